package hold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

// ErrLifted: a root is no longer paused, or gone, and it was not the holder's doing.
var ErrLifted = errors.New("it is not paused any more, or gone, and it was not scute that did it: find out what resets it (a GitOps tool?), and stop that while it is paused")

// errEmptied: a move deletes what belongs to a root.
var errEmptied = errors.New("it stays paused, because a move has begun to delete what belongs to it")

// Graph finds what a pause of Clusters has to bring to rest.
type Graph interface {
	// Below are the Clusters and what belongs to them. others are objects that show which kinds speak of being paused.
	Below(ctx context.Context) (below []pause.Subject, others []object.Observed, err error)
	// Kind is how the server serves the kind of an object.
	Kind(object.Ref) (kube.Type, error)
}

// Pause is an acknowledged pause of Clusters, for its own sake. It is used by one goroutine at a time.
type Pause struct {
	writer  Writer
	graph   Graph
	mark    Mark
	state   pause.State
	watch   pause.Watch
	touches Touches
}

// workers bounds the calls in flight of one pause.
const workers = 16

// NewPause prepares a pause, with the mark that it leaves on the roots.
func NewPause(c *kube.Cluster, graph Graph, mark Mark) *Pause {
	return &Pause{
		writer: Writer{Cluster: c, Kind: graph.Kind, Workers: workers}, graph: graph, mark: mark, touches: Touches{By: mark.Holder},
	}
}

// Continue takes up a pause that another process set, or this one with another graph.
func (p *Pause) Continue(graph Graph, state pause.State) {
	p.graph, p.writer.Kind, p.state = graph, graph.Kind, state
}

// Found is what one look before the pause shows.
type Found struct {
	// Roots are all objects that have to be paused; each with the state that it had before this holder's pause.
	Roots []pause.Root
	// Stale are the objects that call themselves paused while nothing holds them: their word counts for nothing later.
	Stale map[object.Ref]pause.Baseline
	// Held are the objects below roots that were paused before: by a user, or by another holder.
	Held map[object.Ref]pause.Baseline
	// Owners say who had set the pauses that were found.
	Owners map[object.Ref]string
	// Alone are the Clusters that another holder holds alone. They are not among the roots: what they were before it is not known.
	Alone map[object.Ref]Mark
	// Cluster is the name of the Cluster that each object belongs to.
	Cluster map[object.Ref]string
	// AckKinds are the times that definitions give objects of their kinds to acknowledge the pause, by Kind.group.
	AckKinds map[string]time.Duration
}

// Look observes what has to be paused. known are the roots of an earlier observation. For a root that has the holder's
// mark, the earlier observation is used, because the holder itself has changed the root since.
func (p *Pause) Look(ctx context.Context, known []pause.Root) (Found, error) {
	f := Found{
		Stale: make(map[object.Ref]pause.Baseline), Held: make(map[object.Ref]pause.Baseline), Owners: make(map[object.Ref]string),
		Alone: make(map[object.Ref]Mark), Cluster: make(map[object.Ref]string), AckKinds: make(map[string]time.Duration),
	}
	below, _, err := p.graph.Below(ctx)
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
		if root.Found {
			f.Owners[o.Ref] = root.owner
		}
		if root.Found || root.held {
			users[o.Ref.Name] = true
		}
	}
	asked := make(map[string]bool)
	for _, o := range below {
		if kind := o.Ref.GroupKind(); !asked[kind] {
			asked[kind] = true
			typ, err := p.graph.Kind(o.Ref)
			if err != nil {
				return f, err
			}
			if limit, err := typ.Acknowledge(); err != nil {
				return f, err
			} else if limit > 0 {
				f.AckKinds[kind] = limit
			}
		}
		f.Cluster[o.Ref] = o.Cluster
		switch hold := users.Hold(o); {
		case hold:
			f.Held[o.Ref] = pause.Baseline{UID: o.UID, Paused: o.Paused, Held: true}
		case o.Paused == object.True && !own[o.Cluster]: // else this holder has paused it
			f.Stale[o.Ref] = pause.Baseline{UID: o.UID, Paused: o.Paused}
		}
	}
	return f, nil
}

// foundRoot is a Cluster before the pause: the owner of its field, whether another holder has paused it, and which one holds it alone.
type foundRoot struct {
	pause.Root
	owner       string
	held, alone bool
	by          Mark
}

func (p *Pause) root(ctx context.Context, ref object.Ref, known []pause.Root) (f foundRoot, err error) {
	typ, err := p.graph.Kind(ref)
	if err != nil {
		return f, err
	}
	u, err := p.writer.Cluster.Get(ctx, typ, ref.Namespace, ref.Name)
	if err != nil {
		return f, err
	}
	held := holders(u)
	f = foundRoot{Root: RootOf(u), owner: Owner(u, "f:spec", "f:paused")}
	f.by, f.alone = aloneBy(u, held, p.mark)
	own := slices.Contains(held, p.mark)
	f.held = len(held) > 1 || len(held) == 1 && !own
	if i := slices.IndexFunc(known, func(r pause.Root) bool { return r.Ref == ref && r.UID == f.UID }); i >= 0 && own {
		f.Root, f.owner = known[i], ""
	}
	return f, nil
}

// Set pauses the roots and marks them.
func (p *Pause) Set(ctx context.Context, f Found) error {
	p.state.Roots, p.state.Baseline = f.Roots, make(map[object.Ref]pause.Baseline)
	maps.Copy(p.state.Baseline, f.Held)
	maps.Copy(p.state.Baseline, f.Stale)
	if err := p.writer.Set(ctx, p.state.Roots, p.mark); err != nil {
		return err
	}
	p.state.PausedAt = time.Now()
	return nil
}

// SetRoot pauses one root and marks it.
func (p *Pause) SetRoot(ctx context.Context, root pause.Root) error {
	return p.writer.Set(ctx, []pause.Root{root}, p.mark)
}

// Acknowledged takes one look at everything below the roots. It is done when nothing is pending and two looks in a row
// saw the same objects.
func (p *Pause) Acknowledged(ctx context.Context) (how map[object.Ref]pause.Signal, pending []pause.Wait, done bool, err error) {
	below, look, err := p.See(ctx)
	if err != nil {
		return nil, nil, false, err
	}
	if root, lifted := p.state.Lifted(below); lifted {
		return nil, nil, false, fmt.Errorf("%s: %w", root, ErrLifted)
	}
	if p.state.Acks == nil {
		p.state.Acks = make(map[object.Ref]pause.Signal)
	}
	maps.Copy(p.state.Acks, look.New)
	return p.state.Acks, look.Pending, look.Stable, nil
}

// See takes one look at everything below the roots, and wakes the controllers of silent objects.
func (p *Pause) See(ctx context.Context) (below []pause.Subject, look pause.Look, err error) {
	below, others, err := p.graph.Below(ctx)
	if err != nil {
		return nil, look, err
	}
	now := time.Now()
	look = p.watch.Look(&p.state, below, others, now)
	if now.Sub(p.state.PausedAt) >= TouchAfter {
		p.touches.Touch(ctx, p.writer, look.Wake)
	}
	return below, look, nil
}

// Restore restores the pause states that were found and triggers the controllers that acknowledged the pause. A root
// without the holder's mark is not changed.
func (p *Pause) Restore(ctx context.Context, roots []pause.Root) error {
	var emptied error
	whole := make([]pause.Root, 0, len(roots))
	for _, root := range roots {
		typ, err := p.graph.Kind(root.Ref)
		if err != nil {
			return err
		}
		u, err := p.writer.Cluster.Get(ctx, typ, root.Ref.Namespace, root.Ref.Name)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil && u.GetUID() == root.UID {
			if by := u.GetAnnotations()[object.EmptyingAnnotation]; by != "" {
				emptied = cmp.Or(emptied, fmt.Errorf("%s: %w: %s", root.Ref, errEmptied, by))
				continue
			}
		}
		whole = append(whole, root)
	}
	if err := cmp.Or(p.writer.Restore(ctx, whole, p.mark), emptied); err != nil {
		return err
	}
	below, _, err := p.graph.Below(ctx)
	if err != nil {
		return err
	}
	return p.writer.Wake(ctx, &p.touches, below)
}

// Asleep are objects below the roots that still call themselves paused while nothing holds them any more. The look
// wakes the Machines among them, which do not watch their Cluster's pause.
func (p *Pause) Asleep(ctx context.Context) ([]pause.Wait, error) {
	below, _, err := p.graph.Below(ctx)
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
	p.touches.Touch(ctx, p.writer, wake)
	return asleep, nil
}
