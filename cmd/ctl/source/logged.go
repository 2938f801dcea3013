package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/connect"
	"scute.dev/eventlog"
)

// Log reads objects from the event log.
type Log[T any] struct {
	Log *connect.Log
	// Kind is the kind of the aggregates that contain the objects, and Noun its name in errors, for example "move".
	Kind eventlog.Kind
	Noun string
	// Key returns the namespace and name of an object.
	Key func(T) types.NamespacedName
	// NewFold returns an empty fold of an aggregate.
	NewFold func(id string) Fold[T]
	// Group returns the group of an aggregate. A later aggregate of a group replaces earlier ones, which are not read. If it is nil, there are no
	// groups.
	Group func(id string) string
	// MayContain reports whether an aggregate may contain the object. If it is nil, all may.
	MayContain func(id string, key types.NamespacedName) bool
	// OnReplay reports the progress of a replay, and OnReplayed its end. Both may be nil.
	OnReplay   func(seq uint64)
	OnReplayed func()
}

// Fold is the state of an aggregate, computed from its commits.
type Fold[T any] interface {
	// Apply applies a commit. It ignores commits that it has already applied.
	Apply(eventlog.Record) error
	// Items returns the current objects of the aggregate.
	Items() []T
}

// Found is an aggregate in a log, with its first sequence.
type Found struct {
	ID    string
	First uint64
}

// Find returns the aggregates of the kind, oldest first, and the log's last sequence. It decodes no commit.
func (l *Log[T]) Find(ctx context.Context) (found []Found, head uint64, err error) {
	seen := make(map[string]bool)
	head, err = l.Log.Replay(ctx, 0, func(r eventlog.Record) error {
		if l.OnReplay != nil {
			l.OnReplay(r.Seq)
		}
		if id := r.Aggregate.ID; r.Aggregate.Kind == l.Kind && !seen[id] {
			seen[id] = true
			found = append(found, Found{ID: id, First: r.Seq})
		}
		return nil
	})
	if l.OnReplayed != nil {
		l.OnReplayed()
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading the log at %s: %w", l.Log.Where, err)
	}
	return found, head, nil
}

// newest returns the last aggregate of each group that may contain the object, oldest first.
func (l *Log[T]) newest(found []Found, key types.NamespacedName) []Found {
	latest := make(map[string]Found)
	for _, f := range found { // oldest first
		if l.MayContain != nil && !l.MayContain(f.ID, key) {
			continue
		}
		group := f.ID
		if l.Group != nil {
			group = l.Group(f.ID)
		}
		latest[group] = f
	}
	return slices.SortedFunc(maps.Values(latest), func(a, b Found) int { return cmp.Compare(a.First, b.First) })
}

// loaded is an aggregate that was read.
type loaded[T any] struct {
	id   string
	fold Fold[T]
	seq  uint64 // sequence of the last commit read
}

func (l *Log[T]) read(ctx context.Context, id string) (*loaded[T], error) {
	records, err := l.Log.Read(ctx, eventlog.Aggregate{Kind: l.Kind, ID: id}, 0)
	if err != nil {
		return nil, fmt.Errorf("reading %s %s from the log at %s: %w", l.Noun, id, l.Log.Where, err)
	}
	o := &loaded[T]{id: id, fold: l.NewFold(id)}
	return o, l.apply(o, records...)
}

func (l *Log[T]) apply(o *loaded[T], records ...eventlog.Record) error {
	for _, r := range records {
		if r.Seq <= o.seq {
			continue
		}
		if err := o.fold.Apply(r); err != nil {
			return fmt.Errorf("reading %s %s: %w", l.Noun, o.id, err)
		}
		o.seq = r.Seq
	}
	return nil
}

// lookup finds the newest object of a name, and its aggregate.
func (l *Log[T]) lookup(ctx context.Context, key types.NamespacedName) (o *loaded[T], item T, head uint64, err error) {
	found, head, err := l.Find(ctx)
	if err != nil {
		return nil, item, 0, err
	}
	namespaces := make(map[string]bool)
	for _, f := range l.newest(found, key) { // newest last
		candidate, err := l.read(ctx, f.ID)
		if err != nil {
			return nil, item, 0, err
		}
		for _, i := range candidate.fold.Items() {
			if at := l.Key(i); at.Name == key.Name && (key.Namespace == "" || key.Namespace == at.Namespace) {
				o, item = candidate, i
				namespaces[at.Namespace] = true
			}
		}
	}
	switch {
	case o == nil:
		return nil, item, 0, &missing{noun: l.Noun, key: key, where: "in the log at " + l.Log.Where}
	case len(namespaces) > 1:
		return nil, item, 0, fmt.Errorf("%ss with the name %s are in several namespaces: choose one with -n: %s",
			l.Noun, key.Name, strings.Join(slices.Sorted(maps.Keys(namespaces)), ", "))
	}
	return o, item, head, nil
}

// ID returns the aggregate that contains the newest object of a name.
func (l *Log[T]) ID(ctx context.Context, key types.NamespacedName) (string, error) {
	o, _, _, err := l.lookup(ctx, key)
	if err != nil {
		return "", err
	}
	return o.id, nil
}

// Get reads the newest object of a name.
func (l *Log[T]) Get(ctx context.Context, key types.NamespacedName) (T, error) {
	_, item, _, err := l.lookup(ctx, key)
	return item, err
}

// List reads the newest object of each name.
func (l *Log[T]) List(ctx context.Context, namespace string) ([]T, error) {
	all, _, err := l.loadAll(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return l.values(all, namespace), nil
}

func (l *Log[T]) loadAll(ctx context.Context, namespace string) (loadAll []*loaded[T], head uint64, err error) {
	found, head, err := l.Find(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, f := range l.newest(found, types.NamespacedName{Namespace: namespace}) {
		o, err := l.read(ctx, f.ID)
		if err != nil {
			return nil, 0, err
		}
		loadAll = append(loadAll, o)
	}
	return loadAll, head, nil
}

// values returns the newest object of each name, sorted by namespace and name.
func (l *Log[T]) values(all []*loaded[T], namespace string) []T {
	latest := make(map[types.NamespacedName]T)
	for _, o := range all { // newest last
		for _, i := range o.fold.Items() {
			if key := l.Key(i); namespace == "" || namespace == key.Namespace {
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

var errEnough = errors.New("enough")

// Watch reads an object and follows new commits. A folder cannot be followed, so Watch returns ErrNotDriven for an unfinished object.
func (l *Log[T]) Watch(ctx context.Context, key types.NamespacedName, fn func(T) bool) error {
	o, item, head, err := l.lookup(ctx, key)
	if err != nil {
		return err
	}
	if fn(item) {
		return nil
	}
	if key = l.Key(item); l.Log.Static {
		return l.checkStatic(l.Noun + " " + key.String())
	}
	return l.Follow(ctx, o.id, head, func(r eventlog.Record) (bool, error) {
		if err := l.apply(o, r); err != nil {
			return false, err
		}
		for _, i := range o.fold.Items() {
			if l.Key(i) == key {
				return fn(i), nil
			}
		}
		return false, &missing{noun: l.Noun, key: key, where: "in the log any longer", gone: true}
	})
}

// WatchAll reads all objects and follows new commits.
func (l *Log[T]) WatchAll(ctx context.Context, namespace string, fn func([]T) bool) error {
	all, head, err := l.loadAll(ctx, namespace)
	if err != nil {
		return err
	}
	if fn(l.values(all, namespace)) {
		return nil
	}
	if l.Log.Static {
		return l.checkStatic("each " + l.Noun + " that has not ended")
	}
	err = l.Log.Follow(ctx, head, func(r eventlog.Record) error {
		if r.Aggregate.Kind != l.Kind {
			return nil
		}
		i := slices.IndexFunc(all, func(o *loaded[T]) bool { return o.id == r.Aggregate.ID })
		if i < 0 {
			i, all = len(all), append(all, &loaded[T]{id: r.Aggregate.ID, fold: l.NewFold(r.Aggregate.ID)})
		}
		if err := l.apply(all[i], r); err != nil {
			return err
		}
		if fn(l.values(all, namespace)) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (l *Log[T]) checkStatic(what string) error {
	return fmt.Errorf("%s: %w: this is the log in the folder %s", what, ErrNotDriven, l.Log.Where)
}

// Follow calls fn with each commit of an aggregate after a sequence, until fn returns enough or an error.
func (l *Log[T]) Follow(ctx context.Context, id string, after uint64, fn func(eventlog.Record) (enough bool, err error)) error {
	err := l.Log.Follow(ctx, after, func(r eventlog.Record) error {
		if r.Aggregate.Kind != l.Kind || r.Aggregate.ID != id {
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
