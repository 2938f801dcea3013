package runner

import (
	"context"
	"time"

	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/hold"
	"scute.dev/pause/request"
)

// onlySet is a graph in which only objects of paused Clusters must acknowledge.
type onlySet struct {
	hold.Graph
	drive *drive
}

func (g onlySet) Below(ctx context.Context) (below []pause.Subject, others []object.Observed, err error) {
	below, others, err = g.Graph.Below(ctx)
	paused := make(map[string]bool)
	for ref := range g.drive.State.Set {
		paused[ref.Name] = true
	}
	for i := range below {
		below[i].Free = below[i].Free || !paused[below[i].Cluster]
	}
	return below, others, err
}

// see evaluates all objects and records the result. held are the Clusters that another holder holds alone.
func (d *drive) see(ctx context.Context, held []pause.Wait) error {
	below, look, err := d.hold.See(ctx, d.state())
	if err != nil {
		return err
	}
	l := newLooked(d.State, below)
	for _, w := range held {
		l.wait(w.Ref.Name, w)
	}
	l.roots()
	l.missing(d.names)
	l.silent(look.Pending, d.blocked)
	l.answered(look.New, d.Time(), d.blocked)
	l.withdrawn()
	l.Stable = look.Stable && len(l.Pending) == 0 && len(l.Gone) == 0
	return d.decide(ctx, l.Looked)
}

// looked collects the results of one evaluation. If an object is pending for several reasons, the first reason is kept.
type looked struct {
	request.Looked
	state *request.State
	// there contains all evaluated objects. set contains the names of all existing Clusters; a value is true if the Cluster has this pause.
	there map[object.Ref]pause.Subject
	set   map[string]bool
	waits map[object.Ref]bool
}

func newLooked(s *request.State, below []pause.Subject) *looked {
	l := &looked{
		Looked: request.Looked{New: make(map[object.Ref]request.Ack), Withdrawn: make(map[object.Ref]string), Pending: make(map[string][]pause.Wait)},
		state:  s, there: make(map[object.Ref]pause.Subject, len(below)), set: make(map[string]bool), waits: make(map[object.Ref]bool),
	}
	for _, b := range below {
		l.there[b.Ref] = b
		if pause.IsCluster(b.Ref) {
			l.set[b.Ref.Name] = s.Set[b.Ref]
		}
	}
	return l
}

func (l *looked) wait(cluster string, w pause.Wait) {
	if !l.waits[w.Ref] {
		l.waits[w.Ref] = true
		l.Pending[cluster] = append(l.Pending[cluster], w)
	}
}

// roots collects Clusters that were deleted or replaced, and Clusters that another client has unpaused.
func (l *looked) roots() {
	for _, root := range l.state.Roots {
		b, is := l.there[root.Ref]
		switch {
		case !is || b.UID != root.UID:
			l.Gone = append(l.Gone, root.Ref)
		case l.state.Set[root.Ref] && !pause.RootOf(b.Observed).Found:
			l.wait(root.Ref.Name, pause.Wait{Ref: root.Ref, Why: hold.ErrLifted.Error()})
		}
	}
}

// missing collects selected Clusters that are not paused yet, and named Clusters that do not exist.
func (l *looked) missing(selected []string) {
	for _, name := range selected {
		if set, is := l.set[name]; is && !set {
			l.wait(name, pause.Wait{Ref: l.cluster(name), Why: "it is not paused yet"})
		}
	}
	for _, name := range l.state.Spec.Clusters {
		if _, is := l.set[name]; !is {
			l.wait(name, pause.Wait{Ref: l.cluster(name), Why: "it does not exist"})
		}
	}
}

func (l *looked) cluster(name string) object.Ref {
	return object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: l.state.Spec.Namespace, Name: name}
}

// silent collects the objects that have not acknowledged. It adds those that their providers hold to blocked.
func (l *looked) silent(pending []pause.Wait, blocked map[object.Ref]bool) {
	for _, w := range pending {
		b := l.there[w.Ref]
		if !l.set[b.Cluster] {
			continue
		}
		l.wait(b.Cluster, w)
		if b.BlockMove {
			blocked[w.Ref] = true
		}
	}
}

// answered collects the objects that have acknowledged now.
func (l *looked) answered(objects map[object.Ref]pause.Signal, now time.Time, blocked map[object.Ref]bool) {
	after := pause.Duration(now.Sub(l.state.PausedAt).Round(time.Millisecond))
	for ref, how := range objects {
		if b := l.there[ref]; l.set[b.Cluster] {
			l.New[ref] = request.Ack{How: how, Cluster: b.Cluster, After: after, BlockMove: blocked[ref]}
			delete(blocked, ref)
		}
	}
}

// withdrawn collects the objects whose acknowledgements are no longer valid.
func (l *looked) withdrawn() {
	for ref, ack := range l.state.Acks {
		b, is := l.there[ref]
		if !is {
			l.Withdrawn[ref] = "it is gone"
			continue
		}
		if why := pause.Broken(ack.How, b.Observed); why != "" {
			l.Withdrawn[ref] = why
			l.wait(b.Cluster, pause.Wait{Ref: ref, Why: why})
		}
	}
}
