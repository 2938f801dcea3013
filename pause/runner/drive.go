package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/internal/redact"
	"scute.dev/internal/supervise"
	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/hold"
	"scute.dev/pause/request"
)

// drive is one pause while it is driven.
type drive struct {
	*aggregate.Root[request.Event, *request.State]

	runner      *Runner
	news        <-chan uint64
	place       *supervise.Place
	look, retry *backoff.ExponentialBackOff

	hold    *hold.Pause
	names   []string        // of the Clusters that graph is about
	graph   hold.Graph      // nil before the first look
	blocked map[string]bool // objects that their provider held with block-move
}

// turn does what can be done now, and says how long to wait before the next one.
func (d *drive) turn(ctx context.Context, before uint64) (wait time.Duration, err error) {
	if err := d.place.Take(ctx); err != nil {
		return 0, err
	}
	defer d.place.Give()
	s := d.State
	switch {
	case !s.Releasing:
		return d.keep(ctx, before)
	case s.RestoredAt.IsZero():
		return 0, d.restore(ctx)
	default:
		return d.awake(ctx)
	}
}

// keep pauses what is selected and looks at what is below it.
func (d *drive) keep(ctx context.Context, before uint64) (time.Duration, error) {
	selected, err := d.selected(ctx)
	if err != nil {
		return 0, err
	}
	if err := d.open(ctx, selected); err != nil {
		return 0, err
	}
	if err := d.intend(ctx); err != nil {
		return 0, err
	}
	waits, err := d.set(ctx)
	if err != nil {
		return 0, err
	}
	if err := d.see(ctx, waits); err != nil {
		return 0, err
	}
	if d.Seq != before {
		d.look.Reset()
	}
	if resting(d.State) {
		return lookSlow, nil
	}
	return d.look.NextBackOff(), nil
}

// selected are the names of the Clusters that the pause is for: those that are named, those that are held, and those that have the
// labels now.
func (d *drive) selected(ctx context.Context) ([]string, error) {
	names := slices.Clone(d.State.Spec.Clusters)
	for _, root := range d.State.Roots {
		names = append(names, root.Ref.Name)
	}
	if d.State.Spec.BySelector {
		more, err := d.runner.Finder.Clusters(ctx, d.State.Spec.Namespace, d.State.Spec.Selector)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// open prepares the look at Clusters.
func (d *drive) open(ctx context.Context, names []string) error {
	if d.graph != nil && slices.Equal(names, d.names) {
		return nil
	}
	graph, err := d.runner.Finder.Graph(ctx, d.State.Spec.Namespace, names)
	if err != nil {
		return err
	}
	if d.hold == nil {
		d.hold = hold.NewPause(d.runner.Cluster, graph, d.mark())
	}
	d.graph, d.names = graph, names
	return nil
}

func (d *drive) mark() hold.Mark {
	return hold.ByPause(d.State.Spec.UID, d.State.Spec.Namespace, d.State.Spec.Name)
}

// state is the pause as the rules need it.
func (d *drive) state() pause.State {
	s := d.State
	out := pause.State{Baseline: s.Baseline, PausedAt: s.PausedAt, Acks: make(map[object.Ref]pause.Signal, len(s.Acks))}
	for _, root := range s.Roots {
		if s.Set[root.Ref] {
			out.Roots = append(out.Roots, root)
		}
	}
	for ref, ack := range s.Acks {
		out.Acks[ref] = ack.How
	}
	return out
}

// intend records Clusters that are not known yet, as they are found.
func (d *drive) intend(ctx context.Context) error {
	fresh := slices.ContainsFunc(d.names, func(name string) bool {
		return !slices.ContainsFunc(d.State.Roots, func(r pause.Root) bool { return r.Ref.Name == name })
	})
	if !fresh {
		return nil
	}
	d.hold.Continue(d.graph, d.state())
	found, err := d.hold.Look(ctx, d.State.Roots)
	if err != nil {
		return err
	}
	o := request.Selected{Baseline: make(map[object.Ref]pause.Baseline)}
	for _, root := range found.Roots {
		if _, known := d.State.Root(root.Ref); !known {
			o.Roots = append(o.Roots, root)
		}
	}
	for _, part := range []map[object.Ref]pause.Baseline{found.Held, found.Stale} {
		for ref, b := range part {
			if _, known := d.State.Baseline[ref]; !known && !d.acked(ref) {
				o.Baseline[ref] = b
			}
		}
	}
	return d.decide(ctx, o)
}

func (d *drive) acked(ref object.Ref) bool {
	_, acked := d.State.Acks[ref]
	return acked
}

// set pauses the Clusters that are not paused yet. One that a move holds is waited for.
func (d *drive) set(ctx context.Context) (waits []pause.Wait, err error) {
	if err := d.Held(d.runner.Incarnation); err != nil {
		return nil, err
	}
	d.hold.Continue(d.graph, d.state())
	var done, again []object.Ref
	for _, root := range d.State.Roots {
		if d.State.Set[root.Ref] {
			continue
		}
		err := d.hold.SetRoot(ctx, root)
		switch {
		case err == nil:
			done = append(done, root.Ref)
		case errors.Is(err, hold.ErrHeld):
			waits = append(waits, pause.Wait{Ref: root.Ref, Why: strings.TrimPrefix(err.Error(), root.Ref.String()+": ")})
		case errors.Is(err, hold.ErrReplaced), errors.Is(err, hold.ErrChanged):
			again = append(again, root.Ref)
		default:
			return nil, err
		}
	}
	if len(again) > 0 { // it is found again at the next look
		return nil, d.decide(ctx, request.Looked{Gone: again})
	}
	return waits, d.decide(ctx, request.Set{Roots: done})
}

// onlySet is a graph of which only Clusters that are paused must acknowledge.
type onlySet struct {
	hold.Graph
	set map[object.Ref]bool
}

// Below implements hold.Graph.
func (g onlySet) Below(ctx context.Context) (below []pause.Subject, others []object.Observed, err error) {
	below, others, err = g.Graph.Below(ctx)
	paused := make(map[string]bool)
	for ref := range g.set {
		paused[ref.Name] = true
	}
	for i := range below {
		below[i].Free = below[i].Free || !paused[below[i].Cluster]
	}
	return below, others, err
}

// see records one look at everything.
func (d *drive) see(ctx context.Context, waits []pause.Wait) error {
	d.hold.Continue(onlySet{d.graph, d.State.Set}, d.state())
	below, look, err := d.hold.See(ctx)
	if err != nil {
		return err
	}
	o := request.Looked{New: make(map[object.Ref]request.Ack), Withdrawn: make(map[object.Ref]string), Pending: make(map[string][]pause.Wait)}
	now := d.Time()
	there, clusters := make(map[object.Ref]pause.Subject, len(below)), make(map[string]bool)
	for _, b := range below {
		there[b.Ref] = b
		if pause.IsCluster(b.Ref) {
			clusters[b.Ref.Name] = d.State.Set[b.Ref]
		}
	}
	for ref, how := range look.New {
		if b := there[ref]; clusters[b.Cluster] {
			o.New[ref] = request.Ack{How: how, Cluster: b.Cluster, After: request.Duration(now.Sub(d.State.PausedAt).Round(time.Millisecond)), BlockMove: d.blocked[ref.String()]}
			delete(d.blocked, ref.String())
		}
	}
	for _, w := range look.Pending {
		b := there[w.Ref]
		if !clusters[b.Cluster] {
			continue
		}
		o.Pending[b.Cluster] = append(o.Pending[b.Cluster], w)
		if b.BlockMove {
			d.blocked[w.Ref.String()] = true
		}
	}
	for ref, ack := range d.State.Acks {
		b, is := there[ref]
		switch why := pause.Broken(ack.How, b.Observed); {
		case !is:
			o.Withdrawn[ref] = "it is gone"
		case why != "":
			o.Withdrawn[ref] = why
			if !slices.ContainsFunc(look.Pending, func(w pause.Wait) bool { return w.Ref == ref }) {
				o.Pending[b.Cluster] = append(o.Pending[b.Cluster], pause.Wait{Ref: ref, Why: why})
			}
		}
	}
	stable := look.Stable && len(waits) == 0
	for _, root := range d.State.Roots {
		b, is := there[root.Ref]
		switch {
		case !is || b.UID != root.UID:
			o.Gone = append(o.Gone, root.Ref)
		case d.State.Set[root.Ref] && !pause.RootOf(b.Observed).Found:
			o.Pending[root.Ref.Name] = append(o.Pending[root.Ref.Name], pause.Wait{Ref: root.Ref, Why: hold.ErrLifted.Error()})
		}
	}
	for _, w := range waits {
		o.Pending[w.Ref.Name] = append(o.Pending[w.Ref.Name], w)
	}
	for _, name := range d.State.Spec.Clusters {
		if _, is := clusters[name]; !is {
			ref := object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: d.State.Spec.Namespace, Name: name}
			o.Pending[name] = append(o.Pending[name], pause.Wait{Ref: ref, Why: "it does not exist"})
		}
	}
	o.Stable = stable && len(o.Pending) == 0 && len(o.Gone) == 0
	return d.decide(ctx, o)
}

// restore gives every Cluster back what was found on it.
func (d *drive) restore(ctx context.Context) error {
	names := make([]string, len(d.State.Roots))
	for i, root := range d.State.Roots {
		names[i] = root.Ref.Name
	}
	slices.Sort(names)
	if len(names) > 0 {
		if err := d.open(ctx, names); err != nil {
			return err
		}
		d.hold.Continue(d.graph, d.state())
		if err := d.Held(d.runner.Incarnation); err != nil {
			return err
		}
		if err := d.hold.Restore(ctx, d.State.Roots); err != nil {
			return err
		}
	}
	return d.decide(ctx, request.Unpaused{})
}

// awake looks at what still calls itself paused.
func (d *drive) awake(ctx context.Context) (time.Duration, error) {
	var asleep []pause.Wait
	if len(d.State.Roots) > 0 {
		names := make([]string, len(d.State.Roots))
		for i, root := range d.State.Roots {
			names[i] = root.Ref.Name
		}
		slices.Sort(names)
		if err := d.open(ctx, names); err != nil {
			return 0, err
		}
		d.hold.Continue(d.graph, d.state())
		var err error
		if asleep, err = d.hold.Asleep(ctx); err != nil {
			return 0, err
		}
	}
	slices.SortFunc(asleep, func(a, b pause.Wait) int { return object.Compare(a.Ref, b.Ref) })
	return d.look.NextBackOff(), d.decide(ctx, request.Awake{Asleep: asleep})
}

// failed records why a look failed, and what a human can do.
func (d *drive) failed(ctx context.Context, err error) error {
	next := "it is tried again; should this last, look at the API server and at the permissions of scuted: `scutectl doctor`"
	if d.State.Releasing && d.State.RestoredAt.IsZero() {
		next = fmt.Sprintf("it is tried again, and the Pause goes once it is done. To go without: remove annotations %s and %s from each Cluster, set spec.paused as it was, and remove finalizer %s from the Pause",
			d.mark().Annotation, object.BeforeAnnotation, "scute.dev/pause")
	}
	return d.decide(ctx, request.Failed{Message: redact.Message(err.Error()), Next: next})
}

// decide records what follows from an observation. When somebody else wrote first, their events are taken in and it is decided
// again.
func (d *drive) decide(ctx context.Context, o request.Observation) error {
	for {
		events := request.Decide(d.State, o, d.Time())
		if len(events) == 0 {
			return nil
		}
		err := d.Append(ctx, events...)
		if !errors.Is(err, eventlog.ErrConflict) {
			return err
		}
		if err := d.Refresh(ctx, d.runner.Incarnation); err != nil {
			return err
		}
	}
}

// sleep waits, and no longer when others have appended something.
func (d *drive) sleep(ctx context.Context, wait time.Duration) error {
	if wait <= 0 || d.State.Finished() {
		return ctx.Err()
	}
	over := d.runner.Alarm(wait)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return nil
		case seq := <-d.news:
			if seq > d.Seq { // else it is a commit of this driver
				return nil
			}
		}
	}
}

// resting says that nothing is expected to change soon.
func resting(s *request.State) bool {
	return s.Late || s.Phase == v1alpha1.PauseAcknowledged && s.Pending.Total == 0
}
