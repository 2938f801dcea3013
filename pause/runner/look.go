package runner

import (
	"context"
	"time"

	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/hold"
	"scute.dev/pause/request"
)

// pausedGraph exempts objects of Clusters that this pause has not paused.
type pausedGraph struct {
	hold.Graph
	drive *drive
}

func (g pausedGraph) Below(ctx context.Context) (below []pause.Subject, others []object.Observed, err error) {
	below, others, err = g.Graph.Below(ctx)
	paused := make(map[string]bool)
	for ref := range g.drive.State.Set {
		paused[ref.Name] = true
	}
	for i := range below {
		below[i].Exempt = below[i].Exempt || !paused[below[i].Cluster]
	}
	return below, others, err
}

// evaluate evaluates all objects. held are the Clusters whose holder admits no further holder.
func (d *drive) evaluate(ctx context.Context, held []pause.PendingObject) error {
	below, look, err := d.hold.Evaluate(ctx, d.pauseState())
	if err != nil {
		return err
	}
	l := newEvaluation(d.State, below)
	for _, w := range held {
		l.addPending(w.Ref.Name, w)
	}
	l.collectRoots()
	l.collectMissing(d.names)
	l.collectPending(look.Pending, d.blocked)
	l.collectAcknowledged(look.New, d.Time(), d.blocked)
	l.collectWithdrawn()
	l.Stable = look.Stable && len(l.Pending) == 0 && len(l.Deleted) == 0
	return d.decide(ctx, l.Evaluated)
}

// evaluation collects the results of one evaluation. For an object that is pending for several
// reasons, it keeps the first.
type evaluation struct {
	request.Evaluated
	state *request.State
	// subjects contains all evaluated objects. paused has an entry for each existing Cluster, true
	// if this pause holds it.
	subjects    map[object.Ref]pause.Subject
	paused      map[string]bool
	pendingRefs map[object.Ref]bool
}

func newEvaluation(s *request.State, below []pause.Subject) *evaluation {
	l := &evaluation{
		Evaluated: request.Evaluated{New: make(map[object.Ref]request.Ack), Withdrawn: make(map[object.Ref]string), Pending: make(map[string][]pause.PendingObject)},
		state:     s, subjects: make(map[object.Ref]pause.Subject, len(below)), paused: make(map[string]bool), pendingRefs: make(map[object.Ref]bool),
	}
	for _, b := range below {
		l.subjects[b.Ref] = b
		if pause.IsCluster(b.Ref) {
			l.paused[b.Ref.Name] = s.Set[b.Ref]
		}
	}
	return l
}

func (l *evaluation) addPending(cluster string, w pause.PendingObject) {
	if !l.pendingRefs[w.Ref] {
		l.pendingRefs[w.Ref] = true
		l.Pending[cluster] = append(l.Pending[cluster], w)
	}
}

func (l *evaluation) collectRoots() {
	for _, root := range l.state.Roots {
		b, is := l.subjects[root.Ref]
		switch {
		case !is || b.UID != root.UID:
			l.Deleted = append(l.Deleted, root.Ref)
		case l.state.Set[root.Ref] && !pause.RootOf(b.Observed).Found:
			l.addPending(root.Ref.Name, pause.PendingObject{Ref: root.Ref, Reason: hold.ErrUnpaused.Error()})
		}
	}
}

func (l *evaluation) collectMissing(selected []string) {
	for _, name := range selected {
		if set, is := l.paused[name]; is && !set {
			l.addPending(name, pause.PendingObject{Ref: l.clusterRef(name), Reason: "it is not paused yet"})
		}
	}
	for _, name := range l.state.Spec.Clusters {
		if _, is := l.paused[name]; !is {
			l.addPending(name, pause.PendingObject{Ref: l.clusterRef(name), Reason: "it does not exist"})
		}
	}
}

func (l *evaluation) clusterRef(name string) object.Ref {
	return object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: l.state.Spec.Namespace, Name: name}
}

// collectPending also adds the objects that their providers block to blocked.
func (l *evaluation) collectPending(pending []pause.PendingObject, blocked map[object.Ref]bool) {
	for _, w := range pending {
		b := l.subjects[w.Ref]
		if !l.paused[b.Cluster] {
			continue
		}
		l.addPending(b.Cluster, w)
		if b.BlockMove {
			blocked[w.Ref] = true
		}
	}
}

func (l *evaluation) collectAcknowledged(objects map[object.Ref]pause.Signal, now time.Time, blocked map[object.Ref]bool) {
	after := pause.Duration(now.Sub(l.state.PausedAt).Round(time.Millisecond))
	for ref, how := range objects {
		if b := l.subjects[ref]; l.paused[b.Cluster] {
			l.New[ref] = request.Ack{How: how, Cluster: b.Cluster, After: after, BlockMove: blocked[ref]}
			delete(blocked, ref)
		}
	}
}

func (l *evaluation) collectWithdrawn() {
	for ref, ack := range l.state.Acks {
		b, is := l.subjects[ref]
		if !is {
			l.Withdrawn[ref] = "it was deleted"
			continue
		}
		if why := pause.InvalidReason(ack.How, b.Observed); why != "" {
			l.Withdrawn[ref] = why
			l.addPending(b.Cluster, pause.PendingObject{Ref: ref, Reason: why})
		}
	}
}
