package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/reach"
	"scute.dev/eventlog"
)

// Logged reads runs from an event log.
type Logged struct {
	Log *reach.Log
	// Replaying is told how far a replay is, Replayed that it is over; nil tells nobody.
	Replaying func(seq uint64)
	Replayed  func()
}

// Found is a run in a log, by where it begins.
type Found struct {
	ID    string
	First uint64
}

// parts of an id: namespace/name/rest.
func (f Found) parts() (namespace, name string) {
	parts := strings.SplitN(f.ID, "/", 3)
	if len(parts) < 3 {
		return "", f.ID
	}
	return parts[0], parts[1]
}

// Find lists the runs of a log, the oldest first. Nothing of them is decoded.
func (l *Logged) Find(ctx context.Context) ([]Found, error) {
	seen := make(map[string]bool)
	var found []Found
	_, err := l.Log.Replay(ctx, 0, func(r eventlog.Record) error {
		if l.Replaying != nil {
			l.Replaying(r.Seq)
		}
		if id := r.Aggregate.ID; r.Aggregate.Kind == eventlog.KindRun && !seen[id] {
			seen[id] = true
			found = append(found, Found{ID: id, First: r.Seq})
		}
		return nil
	})
	if l.Replayed != nil {
		l.Replayed()
	}
	if err != nil {
		return nil, fmt.Errorf("reading the log at %s: %w", l.Log.Where, err)
	}
	return found, nil
}

// newest of each namespace and name, by them.
func newest(found []Found) []Found {
	latest := make(map[types.NamespacedName]Found)
	for _, f := range found { // the oldest first
		namespace, name := f.parts()
		latest[types.NamespacedName{Namespace: namespace, Name: name}] = f
	}
	out := make([]Found, 0, len(latest))
	for _, f := range latest {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Found) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// ID finds the newest run of a name.
func (l *Logged) ID(ctx context.Context, key types.NamespacedName) (string, error) {
	found, err := l.Find(ctx)
	if err != nil {
		return "", err
	}
	id := ""
	var namespaces []string
	for _, f := range newest(found) {
		namespace, name := f.parts()
		if name == key.Name && (key.Namespace == "" || key.Namespace == namespace) {
			id, namespaces = f.ID, append(namespaces, namespace)
		}
	}
	switch {
	case id == "":
		return "", notFound(key, "in the log at "+l.Log.Where)
	case len(namespaces) > 1:
		return "", fmt.Errorf("runs of the name %s are in several namespaces: choose one with -n: %s", key.Name, strings.Join(namespaces, ", "))
	}
	return id, nil
}

// Get folds the newest run of a name.
func (l *Logged) Get(ctx context.Context, key types.NamespacedName) (*Run, error) {
	id, err := l.ID(ctx, key)
	if err != nil {
		return nil, err
	}
	f, err := l.Fold(ctx, id)
	if err != nil {
		return nil, err
	}
	return f.Look(), nil
}

// Fold reads one run by its id.
func (l *Logged) Fold(ctx context.Context, id string) (*Fold, error) {
	records, err := l.Log.Read(ctx, eventlog.Aggregate{Kind: eventlog.KindRun, ID: id}, 0)
	if err != nil {
		return nil, fmt.Errorf("reading run %s from the log at %s: %w", id, l.Log.Where, err)
	}
	f := NewFold(id)
	f.Local = l.Log.Static
	for _, r := range records {
		if err := f.Apply(r); err != nil {
			return nil, fmt.Errorf("reading run %s: %w", id, err)
		}
	}
	return f, nil
}

// List folds the newest run of each name.
func (l *Logged) List(ctx context.Context, namespace string) ([]*Run, error) {
	found, err := l.Find(ctx)
	if err != nil {
		return nil, err
	}
	var list []*Run
	for _, one := range newest(found) {
		if ns, _ := one.parts(); namespace != "" && ns != namespace {
			continue
		}
		f, err := l.Fold(ctx, one.ID)
		if err != nil {
			return nil, err
		}
		list = append(list, f.Look())
	}
	return list, nil
}

// Watch folds the run and goes on folding. In a folder nothing can follow: then a run that does not rest ends it with
// ErrStill.
func (l *Logged) Watch(ctx context.Context, key types.NamespacedName, fn func(*Run) bool) error {
	id, err := l.ID(ctx, key)
	if err != nil {
		return err
	}
	f, err := l.Fold(ctx, id)
	if err != nil {
		return err
	}
	if fn(f.Look()) {
		return nil
	}
	if l.Log.Static {
		return fmt.Errorf("run %s: %w: this is the log in the folder %s", id, ErrStill, l.Log.Where)
	}
	return l.Follow(ctx, id, f.Seq, func(r eventlog.Record) (bool, error) {
		if err := f.Apply(r); err != nil {
			return false, err
		}
		return fn(f.Look()), nil
	})
}

var errEnough = errors.New("enough")

// Follow tells fn of each commit on a run after a sequence, until fn has seen enough or fails.
func (l *Logged) Follow(ctx context.Context, id string, after uint64, fn func(eventlog.Record) (enough bool, err error)) error {
	err := l.Log.Follow(ctx, after, func(r eventlog.Record) error {
		if r.Aggregate.Kind != eventlog.KindRun || r.Aggregate.ID != id {
			return nil
		}
		enough, err := fn(r)
		if err == nil && enough {
			return errEnough
		}
		return err
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
