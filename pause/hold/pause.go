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

// ErrLifted is returned if a client other than the holder has unpaused or deleted a root.
var ErrLifted = errors.New("it is not paused any more, or gone, and it was not scute that did it: find out what resets it (a GitOps tool?), and stop that while it is paused")

// Graph finds the objects that a pause of Clusters concerns.
type Graph interface {
	// Below returns the Clusters and their objects. others are objects that show which kinds have a condition Paused.
	Below(ctx context.Context) (below []pause.Subject, others []object.Observed, err error)
	// Kind returns the served type of an object.
	Kind(object.Ref) (kube.Type, error)
}

// Pause is an acknowledged pause of Clusters outside a move. It is not safe for concurrent use.
type Pause struct {
	// Graph may be replaced between two calls.
	Graph Graph

	writer Writer
	mark   Mark
	watch  Watch
}

// workers limits the concurrent calls of one pause.
const workers = 16

// NewPause returns a pause that sets the mark on its roots.
func NewPause(c *kube.Cluster, graph Graph, mark Mark) *Pause {
	p := &Pause{Graph: graph, mark: mark}
	p.writer = Writer{Cluster: c, Kind: func(ref object.Ref) (kube.Type, error) { return p.Graph.Kind(ref) }, Workers: workers, By: mark.Holder}
	return p
}

// Root is a Cluster with its earlier pause state.
type Root struct {
	pause.Root
	// By is the field manager that had paused it, if it was paused before.
	By string `json:"by,omitempty"`
}

// Found is the state before the pause.
type Found struct {
	// Roots are the Clusters to pause, each with its state before this holder's pause.
	Roots []Root
	// Below are the Clusters and their objects.
	Below []pause.Subject
	// Stale are the objects whose condition Paused is True although nothing holds them, so the condition does not acknowledge this pause.
	Stale map[object.Ref]pause.Baseline
	// Held are the objects that were paused before, by a user or another holder.
	Held map[object.Ref]pause.Baseline
	// Alone are the Clusters that another holder holds alone. They are not in Roots, because their state before that holder is unknown.
	Alone map[object.Ref]Mark
	// AckKinds are the acknowledgement timeouts that CustomResourceDefinitions set for objects of their kinds, by Kind.group.
	AckKinds map[string]pause.Duration
}

// Baseline returns the relevant objects just before the pause.
func (f Found) Baseline() map[object.Ref]pause.Baseline {
	baseline := make(map[object.Ref]pause.Baseline, len(f.Held)+len(f.Stale))
	maps.Copy(baseline, f.Held)
	maps.Copy(baseline, f.Stale)
	return baseline
}

// Look returns the state before the pause. known are the roots of an earlier call. Look returns them for roots with the holder's mark, because the
// holder has changed these roots since.
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
		case o.Paused == object.True && !own[o.Cluster]: // otherwise this holder has paused it
			f.Stale[o.Ref] = pause.Baseline{UID: o.UID, Paused: o.Paused}
		}
	}
	f.Below = below
	var wrong []error
	f.AckKinds, wrong = AckLimits(below, p.Graph.Kind)
	return f, cmp.Or(wrong...)
}

// AckLimits returns the acknowledgement timeouts that the kinds' definitions set, by Kind.group. wrong contains an error for each invalid one.
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

// foundRoot is a Cluster before the pause. held means that another holder has paused it, and alone that the holder by does not admit others.
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

// Set pauses roots and adds the mark.
func (p *Pause) Set(ctx context.Context, roots ...pause.Root) error {
	return p.writer.Set(ctx, roots, p.mark)
}

// See evaluates all objects below the roots once, and wakes the controllers of silent objects.
func (p *Pause) See(ctx context.Context, s *pause.State) (below []pause.Subject, look pause.Look, err error) {
	below, others, err := p.Graph.Below(ctx)
	if err != nil {
		return nil, look, err
	}
	return below, p.watch.Look(ctx, p.writer, s, below, others), nil
}

// Restore restores the earlier pause states and wakes the controllers that acknowledged the pause. A root without the holder's mark is not changed.
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

// Asleep returns the objects below the roots whose condition Paused is True although nothing holds them. It wakes their controllers, because the
// controller of Machines does not watch the pause of their Cluster.
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
