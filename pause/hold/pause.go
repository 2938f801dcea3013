package hold

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

// ErrUnpaused is returned if a client other than the holder has unpaused or deleted a root.
var ErrUnpaused = errors.New("another client has unpaused or deleted it: find out what resets the pause (a GitOps tool?), and suspend it during " +
	"the pause")

// Graph finds the objects that a pause of Clusters concerns.
type Graph interface {
	// Below returns the Clusters and the objects that belong to them. others contains further
	// objects, from which the kinds with a condition Paused are determined.
	Below(ctx context.Context) (below []pause.Subject, others []object.Observed, err error)
	Kind(object.Ref) (kube.Type, error)
}

// Pause performs an acknowledged pause of Clusters that is not part of a move. It is not safe for
// concurrent use.
type Pause struct {
	// Graph may be replaced between two calls.
	Graph Graph

	writer  Writer
	holder  Holder
	watch   pause.Watch
	touches Touches
}

const workers = 16

// NewPause returns a pause that records the holder mark on its roots.
func NewPause(c *kube.Cluster, graph Graph, mark Holder) *Pause {
	p := &Pause{Graph: graph, holder: mark}
	p.writer = Writer{Cluster: c, Kind: func(ref object.Ref) (kube.Type, error) { return p.Graph.Kind(ref) }, Workers: workers, TouchValue: mark.ID}
	return p
}

// Root is a Cluster with its earlier pause state.
type Root struct {
	pause.Root
	// PausedBy is the field manager that had paused the Cluster before.
	PausedBy string `json:"pausedBy,omitempty"`
}

// InitialState contains the state of the Clusters and their objects before the pause.
type InitialState struct {
	// Roots are the Clusters to pause, each with its state before this holder's pause.
	Roots []Root
	// Below contains the Clusters and the objects that belong to them.
	Below []pause.Subject
	// Stale contains objects whose condition Paused is True although nobody has paused them. Their
	// condition does not acknowledge this pause.
	Stale map[object.Ref]pause.Baseline
	// AlreadyPaused contains objects that a user or another holder has paused.
	AlreadyPaused map[object.Ref]pause.Baseline
	// Exclusive contains the Clusters whose holder admits no other holder. They are not in Roots,
	// because their state before that holder's pause is unknown.
	Exclusive map[object.Ref]Holder
	// AckKinds are the acknowledgement timeouts that CustomResourceDefinitions set, by Kind.group.
	AckKinds map[string]pause.Duration
}

// Baseline returns the baselines of AlreadyPaused and Stale.
func (f InitialState) Baseline() map[object.Ref]pause.Baseline {
	baseline := make(map[object.Ref]pause.Baseline, len(f.AlreadyPaused)+len(f.Stale))
	maps.Copy(baseline, f.AlreadyPaused)
	maps.Copy(baseline, f.Stale)
	return baseline
}

// Inspect returns the state before the pause. known contains the roots that an earlier call
// returned. For a root that this holder has paused since that call, Inspect returns the known
// state.
func (p *Pause) Inspect(ctx context.Context, known []Root) (InitialState, error) {
	f := InitialState{Stale: make(map[object.Ref]pause.Baseline), AlreadyPaused: make(map[object.Ref]pause.Baseline), Exclusive: make(map[object.Ref]Holder)}
	below, _, err := p.Graph.Below(ctx)
	if err != nil {
		return f, err
	}
	users, own := make(pause.PausedClusters), make(map[string]bool)
	for _, o := range below {
		if pause.IsCluster(o.Ref) {
			if users[o.Ref.Name], err = p.addRoot(ctx, &f, o.Ref, known); err != nil {
				return f, err
			}
		}
	}
	for _, root := range f.Roots {
		own[root.Ref.Name] = slices.Contains(known, root)
	}
	for _, o := range below {
		switch {
		case users.IsPaused(o):
			f.AlreadyPaused[o.Ref] = pause.Baseline{UID: o.UID, Paused: o.Paused, AlreadyPaused: true}
		case o.Paused == object.True && !own[o.Cluster]: // otherwise this holder has paused it
			f.Stale[o.Ref] = pause.Baseline{UID: o.UID, Paused: o.Paused}
		}
	}
	f.Below = below
	var wrong []error
	f.AckKinds, wrong = AckLimits(below, p.Graph.Kind)
	return f, cmp.Or(wrong...)
}

// AckLimits returns the acknowledgement timeouts that CustomResourceDefinitions set, by Kind.group.
// wrong contains an error for each invalid one.
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
		if limit, err := typ.ParseAcknowledgeTimeout(); err != nil {
			wrong = append(wrong, err)
		} else if limit > 0 {
			limits[name] = pause.Duration(limit)
		}
	}
	return limits, wrong
}

// addRoot reports whether a user or another holder paused the Cluster before.
func (p *Pause) addRoot(ctx context.Context, f *InitialState, ref object.Ref, known []Root) (paused bool, err error) {
	typ, err := p.Graph.Kind(ref)
	if err != nil {
		return false, err
	}
	u, err := p.writer.Cluster.Get(ctx, typ, ref.Namespace, ref.Name)
	if err != nil {
		return false, err
	}
	held := holders(u)
	if by, exclusive := exclusiveHolder(u, held, p.holder); exclusive {
		f.Exclusive[ref] = by
		return false, nil
	}
	root := Root{Root: RootOf(u)}
	if root.Found {
		root.PausedBy = SwitchOf(ref).Owner(u)
	}
	own := slices.Contains(held, p.holder)
	if i := slices.IndexFunc(known, func(r Root) bool { return r.Ref == ref && r.UID == root.UID }); i >= 0 && own {
		root = known[i]
	}
	f.Roots = append(f.Roots, root)
	return root.Found || len(held) > 1 || len(held) == 1 && !own, nil
}

// Set pauses roots and adds the holder's annotations.
func (p *Pause) Set(ctx context.Context, roots ...pause.Root) error {
	return p.writer.Set(ctx, roots, p.holder)
}

// Evaluate evaluates all objects below the roots once, and wakes the controllers of silent objects.
func (p *Pause) Evaluate(ctx context.Context, s *pause.State) (below []pause.Subject, look pause.Evaluation, err error) {
	below, others, err := p.Graph.Below(ctx)
	if err != nil {
		return nil, look, err
	}
	look = p.watch.Evaluate(s, below, others, time.Now())
	p.touches.Touch(ctx, p.writer, look.Wake)
	return below, look, nil
}

// Restore restores the earlier pause states and wakes the controllers that acknowledged the pause.
// It skips a root without the holder's annotation.
func (p *Pause) Restore(ctx context.Context, roots []pause.Root) error {
	if err := p.writer.Restore(ctx, roots, p.holder); err != nil {
		return err
	}
	below, _, err := p.Graph.Below(ctx)
	if err != nil {
		return err
	}
	return p.writer.Wake(ctx, &p.touches, below)
}

// StillPaused returns the objects whose condition Paused is True although nothing pauses them any
// more. It touches them to wake their controllers, because the controller of Machines does not
// watch spec.paused of the Cluster.
func (p *Pause) StillPaused(ctx context.Context) ([]pause.PendingObject, error) {
	below, _, err := p.Graph.Below(ctx)
	if err != nil {
		return nil, err
	}
	users := pause.PausedClustersOf(below)
	var asleep []pause.PendingObject
	var wake []object.Ref
	for _, o := range below {
		if o.Paused == object.True && !users.IsPaused(o) {
			asleep = append(asleep, pause.PendingObject{Ref: o.Ref, Reason: "condition Paused is still True"})
			wake = append(wake, o.Ref)
		}
	}
	p.touches.Touch(ctx, p.writer, wake)
	return asleep, nil
}
