package kit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/eventlog"
)

// LogSource reads the objects of a noun from the event log.
type LogSource[T any] struct{ session *Session[T] }

// LogSource returns a source that reads the log, which must be connected.
func (p *Session[T]) LogSource() *LogSource[T] { return &LogSource[T]{p} }

// Fold is the state of an aggregate, computed from its commits.
type Fold[T any] interface {
	// Apply applies a commit. It ignores commits that it has already applied.
	Apply(eventlog.Record) error
	// Items returns the current objects of the aggregate.
	Items() []T
}

// Find returns the IDs of all aggregates of the noun, oldest first, and the last sequence in the
// log. It decodes no events.
func (l *LogSource[T]) Find(ctx context.Context) (ids []string, head uint64, err error) {
	seen, progress := make(map[string]bool), l.session.Env.Progress()
	defer progress.Done()
	head, err = l.session.Log.Replay(ctx, 0, func(r eventlog.Record) error {
		progress.Showf("reading the log: %d commits", r.Seq)
		if id := r.Aggregate.ID; r.Aggregate.Kind == l.session.Noun.Kind && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("reading the log at %s: %w", l.session.Log.Where, err)
	}
	return ids, head, nil
}

// newest returns the last aggregate of each group, oldest first, if the aggregate may contain the
// object.
func (l *LogSource[T]) newest(ids []string, key types.NamespacedName) (latest []string) {
	n, seen := l.session.Noun, make(map[string]bool)
	for _, id := range slices.Backward(ids) {
		group := id
		if n.Group != nil {
			group = n.Group(id)
		}
		if !seen[group] && (n.MayContain == nil || n.MayContain(id, key)) {
			seen[group] = true
			latest = append(latest, id)
		}
	}
	slices.Reverse(latest)
	return latest
}

type loaded[T any] struct {
	id   string
	fold Fold[T]
}

// load reads those aggregates that may contain the object, oldest first. head is the last sequence
// in the log.
func (l *LogSource[T]) load(ctx context.Context, key types.NamespacedName) (all []*loaded[T], head uint64, err error) {
	ids, head, err := l.Find(ctx)
	if err != nil {
		return nil, 0, err
	}
	log, n := l.session.Log, l.session.Noun
	for _, id := range l.newest(ids, key) {
		records, err := log.Read(ctx, eventlog.Aggregate{Kind: n.Kind, ID: id}, 0)
		if err != nil {
			return nil, 0, fmt.Errorf("reading %s %s from the log at %s: %w", n.Name, id, log.Where, err)
		}
		o := &loaded[T]{id: id, fold: n.NewFold(log, id)}
		if err := l.apply(o, records...); err != nil {
			return nil, 0, err
		}
		all = append(all, o)
	}
	return all, head, nil
}

func (l *LogSource[T]) apply(o *loaded[T], records ...eventlog.Record) error {
	for _, r := range records {
		if err := o.fold.Apply(r); err != nil {
			return fmt.Errorf("reading %s %s: %w", l.session.Noun.Name, o.id, err)
		}
	}
	return nil
}

func (l *LogSource[T]) lookup(ctx context.Context, key types.NamespacedName) (o *loaded[T], item T, head uint64, err error) {
	all, head, err := l.load(ctx, key)
	if err != nil {
		return nil, item, 0, err
	}
	n, namespaces := l.session.Noun, make(map[string]bool)
	for _, candidate := range all { // newest last
		for _, i := range candidate.fold.Items() {
			if at := n.Key(i); at.Name == key.Name && (key.Namespace == "" || key.Namespace == at.Namespace) {
				o, item = candidate, i
				namespaces[at.Namespace] = true
			}
		}
	}
	switch {
	case o == nil:
		return nil, item, 0, &missing{noun: n.Name, key: key, where: "in the log at " + l.session.Log.Where}
	case len(namespaces) > 1:
		return nil, item, 0, fmt.Errorf("%s with the name %s are in several namespaces: choose one with -n: %s",
			n.Plural, key.Name, strings.Join(slices.Sorted(maps.Keys(namespaces)), ", "))
	}
	return o, item, head, nil
}

// Get reads the newest object with this name.
func (l *LogSource[T]) Get(ctx context.Context, key types.NamespacedName) (T, error) {
	_, item, _, err := l.lookup(ctx, key)
	return item, err
}

// List reads the newest object for each name.
func (l *LogSource[T]) List(ctx context.Context, namespace string) ([]T, error) {
	all, _, err := l.load(ctx, types.NamespacedName{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	return l.values(all, namespace), nil
}

// values returns the newest object for each name, sorted by namespace and name.
func (l *LogSource[T]) values(all []*loaded[T], namespace string) []T {
	latest := make(map[types.NamespacedName]T)
	for _, o := range all { // newest last
		for _, i := range o.fold.Items() {
			if key := l.session.Noun.Key(i); namespace == "" || namespace == key.Namespace {
				latest[key] = i
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(latest), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	out := make([]T, len(keys))
	for i, key := range keys {
		out[i] = latest[key]
	}
	return out
}

// Watch reads an object and follows new commits. A log in a folder cannot be followed: for an
// unfinished object, Watch then returns errNotDriven.
func (l *LogSource[T]) Watch(ctx context.Context, key types.NamespacedName, fn func(T) bool) error {
	o, item, head, err := l.lookup(ctx, key)
	if err != nil || fn(item) {
		return err
	}
	n := l.session.Noun
	key = n.Key(item)
	return l.follow(ctx, n.Name+" "+key.String(), o.id, head, func(r eventlog.Record) error {
		if err := l.apply(o, r); err != nil {
			return err
		}
		for _, i := range o.fold.Items() {
			if n.Key(i) == key {
				return endIf(fn(i))
			}
		}
		return &missing{noun: n.Name, key: key, where: "in the log any longer", gone: true}
	})
}

// WatchAll reads all objects of a namespace and follows new commits.
func (l *LogSource[T]) WatchAll(ctx context.Context, namespace string, fn func([]T) bool) error {
	all, head, err := l.load(ctx, types.NamespacedName{Namespace: namespace})
	if err != nil || fn(l.values(all, namespace)) {
		return err
	}
	n := l.session.Noun
	return l.follow(ctx, "each "+n.Name+" that has not ended", "", head, func(r eventlog.Record) error {
		id := r.Aggregate.ID
		i := slices.IndexFunc(all, func(o *loaded[T]) bool { return o.id == id })
		if i < 0 {
			i, all = len(all), append(all, &loaded[T]{id: id, fold: n.NewFold(l.session.Log, id)})
		}
		if err := l.apply(all[i], r); err != nil {
			return err
		}
		return endIf(fn(l.values(all, namespace)))
	})
}

// errEnough is returned by a callback to end a watch without an error.
var errEnough = errors.New("enough")

func endIf(enough bool) error {
	if enough {
		return errEnough
	}
	return nil
}

// follow calls fn with each commit after a sequence until fn returns an error. It reads the commits
// of the aggregate id, or of all aggregates of the noun if id is "". If fn returns errEnough,
// follow returns nil. For a log in a folder, which cannot be followed, follow returns errNotDriven.
// The text of this error begins with what.
func (l *LogSource[T]) follow(ctx context.Context, what, id string, after uint64, fn func(eventlog.Record) error) error {
	log := l.session.Log
	if log.Static {
		return fmt.Errorf("%s: %w: this is the log in the folder %s", what, errNotDriven, log.Where)
	}
	err := log.Follow(ctx, after, func(r eventlog.Record) error {
		if r.Aggregate.Kind != l.session.Noun.Kind || id != "" && r.Aggregate.ID != id {
			return nil
		}
		return fn(r)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
