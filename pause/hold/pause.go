package hold

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

// ErrLifted: a root is no longer paused, or gone, and it was not the holder's doing.
var ErrLifted = errors.New("it is not paused any more, or gone, and it was not scute that did it: find out what resets it (a GitOps tool?), and stop that while it is paused")

// Graph finds what a pause of Clusters has to bring to rest.
type Graph interface {
	// Below are the Clusters and what belongs to them. others are objects that show which kinds speak of being paused.
	Below(ctx context.Context) (below []pause.Subject, others []object.Observed, err error)
	// Kind is how the server serves the kind of an object.
	Kind(object.Ref) (kube.Type, error)
}

// Pause is an acknowledged pause of Clusters, for its own sake. It is used by one goroutine at a time.
type Pause struct {
	// Graph may be replaced between two calls.
	Graph Graph

	writer Writer
	mark   Mark
	watch  Watch
}

// workers bounds the calls in flight of one pause.
const workers = 16

// NewPause prepares a pause, with the mark that it leaves on the roots.
func NewPause(c *kube.Cluster, graph Graph, mark Mark) *Pause {
	p := &Pause{Graph: graph, mark: mark}
	p.writer = Writer{Cluster: c, Kind: func(ref object.Ref) (kube.Type, error) { return p.Graph.Kind(ref) }, Workers: workers, By: mark.Holder}
	return p
}

// Root is a Cluster as it was found.
type Root struct {
	pause.Root
	// By is the field manager that had paused it, if it was found paused.
	By string `json:"by,omitempty"`
}

// Found is what one look before the pause shows.
type Found struct {
	// Roots are the Clusters that have to be paused; each with the state that it had before this holder's pause.
	Roots []Root
	// Below are the Clusters and what belongs to them.
	Below []pause.Subject
	// Stale are the objects whose condition Paused is True although nothing holds them: their condition is no acknowledgement later.
	Stale map[object.Ref]pause.Baseline
	// Held are the objects below roots that were paused before: by a user, or by another holder.
	Held map[object.Ref]pause.Baseline
	// Alone are the Clusters that another holder holds alone. They are not among the roots: what they were before it is not known.
	Alone map[object.Ref]Mark
	// AckKinds are the times that definitions give objects of their kinds to acknowledge the pause, by Kind.group.
	AckKinds map[string]pause.Duration
}

// Baseline returns what is known of the objects below the roots just before the pause.
func (f Found) Baseline() map[object.Ref]pause.Baseline {
	baseline := make(map[object.Ref]pause.Baseline, len(f.Held)+len(f.Stale))
	maps.Copy(baseline, f.Held)
	maps.Copy(baseline, f.Stale)
	return baseline
}

// Look observes what has to be paused. known are the roots of an earlier observation. For a root that has the holder's
// mark, the earlier observation is used, because the holder itself has changed the root since.
func (p *Pause) Look(ctx context.Context, known []Root) (Found, error) {
	f := Found{Stale: make(map[object.Ref]pause.Baseline), Held: make(map[object.Ref]pause.Baseline), Alone: make(map[object.Ref]Mark)}
	below, _, err := p.Graph.Below(ctx)
	if err != nil {
		return f, err
	}
	users, own := make(pause.Users), make(map[string]bool)
	for _, o := range below {
		if !pause.IsCluster(o.Ref) {
			continue
		}
		root, err := p.root(ctx, o.Ref, known)
		if err != nil {
			return f, err
		}
		if root.alone {
			f.Alone[o.Ref] = root.by
			continue
		}
		f.Roots = append(f.Roots, root.Root)
		own[o.Ref.Name] = slices.Contains(known, root.Root)
		if root.Found || root.held {
			users[o.Ref.Name] = true
		}
	}
	for _, o := range below {
		switch hold := users.Hold(o); {
		case hold:
			f.Held[o.Ref] = pause.Baseline{UID: o.UID, Paused: o.Paused, Held: true}
		case o.Paused == object.True && !own[o.Cluster]: // else this holder has paused it
			f.Stale[o.Ref] = pause.Baseline{UID: o.UID, Paused: o.Paused}
		}
	}
	f.Below = below
	var wrong []error
	f.AckKinds, wrong = AckLimits(below, p.Graph.Kind)
	return f, cmp.Or(wrong...)
}

// AckLimits returns the times that the definitions of kinds give their objects to acknowledge a pause, by Kind.group. wrong has an error for
// each definition whose time cannot be read.
func AckLimits(below []pause.Subject, kind func(object.Ref) (kube.Type, error)) (limits map[string]pause.Duration, wrong []error) {
	limits = make(map[string]pause.Duration)
	asked := make(map[string]bool)
	for _, o := range below {
		name := o.Ref.GroupKind()
		if asked[name] {
			continue
		}
		asked[name] = true
		typ, err := kind(o.Ref)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if limit, err := typ.Acknowledge(); err != nil {
			wrong = append(wrong, err)
		} else if limit > 0 {
			limits[name] = pause.Duration(limit)
		}
	}
	return limits, wrong
}

// foundRoot is a Cluster before the pause: whether another holder has paused it, and which one holds it alone.
type foundRoot struct {
	Root
	held, alone bool
	by          Mark
}

func (p *Pause) root(ctx context.Context, ref object.Ref, known []Root) (f foundRoot, err error) {
	typ, err := p.Graph.Kind(ref)
	if err != nil {
		return f, err
	}
	u, err := p.writer.Cluster.Get(ctx, typ, ref.Namespace, ref.Name)
	if err != nil {
		return f, err
	}
	held := holders(u)
	f.Root.Root = RootOf(u)
	if f.Found {
		f.Root.By = Owner(u)
	}
	f.by, f.alone = aloneBy(u, held, p.mark)
	own := slices.Contains(held, p.mark)
	f.held = len(held) > 1 || len(held) == 1 && !own
	if i := slices.IndexFunc(known, func(r Root) bool { return r.Ref == ref && r.UID == f.UID }); i >= 0 && own {
		f.Root = known[i]
	}
	return f, nil
}

// Set pauses roots and marks them.
func (p *Pause) Set(ctx context.Context, roots ...pause.Root) error {
	return p.writer.Set(ctx, roots, p.mark)
}

// See looks once at everything below the roots, and wakes the controllers of silent objects.
func (p *Pause) See(ctx context.Context, s *pause.State) (below []pause.Subject, look pause.Look, err error) {
	below, others, err := p.Graph.Below(ctx)
	if err != nil {
		return nil, look, err
	}
	return below, p.watch.Look(ctx, p.writer, s, below, others), nil
}

// Restore restores the pause states that were found and triggers the controllers that acknowledged the pause. A root
// without the holder's mark is not changed.
func (p *Pause) Restore(ctx context.Context, roots []pause.Root) error {
	if err := p.writer.Restore(ctx, roots, p.mark); err != nil {
		return err
	}
	below, _, err := p.Graph.Below(ctx)
	if err != nil {
		return err
	}
	return p.writer.Wake(ctx, &p.watch.Touches, below)
}

// Asleep returns the objects below the roots whose condition Paused is still True while nothing holds them any more. It
// wakes the controllers of these objects: that of Machines does not watch the pause of their Cluster.
func (p *Pause) Asleep(ctx context.Context) ([]pause.Wait, error) {
	below, _, err := p.Graph.Below(ctx)
	if err != nil {
		return nil, err
	}
	users := pause.UsersOf(below)
	var asleep []pause.Wait
	var wake []object.Ref
	for _, o := range below {
		if o.Paused == object.True && !users.Hold(o) {
			asleep = append(asleep, pause.Wait{Ref: o.Ref, Why: "condition Paused is still True"})
			wake = append(wake, o.Ref)
		}
	}
	p.watch.Touch(ctx, p.writer, wake)
	return asleep, nil
}
