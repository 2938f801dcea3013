package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/internal/fair"
	"scute.dev/internal/redact"
	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/hold"
	"scute.dev/pause/request"
)

type drive struct {
	*aggregate.Root[request.Event, *request.State]

	runner                    *Runner
	news                      <-chan uint64
	slot                      *fair.Slot
	pollBackOff, retryBackOff *backoff.ExponentialBackOff

	hold    *hold.Pause         // nil before the first turn
	names   []string            // of the Clusters in hold
	blocked map[object.Ref]bool // objects that their providers have delayed with block-move

	conflicted bool // another process has appended during this turn
	idle       bool // no change is expected soon
}

func (d *drive) sleep(ctx context.Context, wait time.Duration) error {
	if d.idle {
		wait = max(wait, idleInterval(d.runner.idle.Add(1)))
		defer d.runner.idle.Add(-1)
	}
	return d.runner.Sleep(ctx, wait, d.news, d.Seq)
}

// turn does the work that is possible now, and returns how long to wait before the next turn. While
// objects are pending or the pause is idle, the wait is at least as long as this turn, so that the
// controllers of many objects have time to respond.
func (d *drive) turn(ctx context.Context, before uint64) (wait time.Duration, err error) {
	if err := d.slot.Acquire(ctx); err != nil {
		return 0, err
	}
	defer d.slot.Release()
	d.idle = false
	s, began := d.State, d.Time()
	switch {
	case !s.Releasing:
		wait, err = d.maintain(ctx, before)
	case s.RestoredAt.IsZero():
		return 0, d.restore(ctx)
	default:
		wait, err = d.checkResumed(ctx)
	}
	if d.State.Pending.Total > 0 || d.State.StillPausedTotal > 0 || d.idle {
		wait = max(wait, min(d.Time().Sub(began), maxTurn))
	}
	return wait, err
}

func (d *drive) maintain(ctx context.Context, before uint64) (time.Duration, error) {
	selected, err := d.selectedNames(ctx)
	if err != nil {
		return 0, err
	}
	if err := d.prepare(ctx, selected); err != nil {
		return 0, err
	}
	waits, err := d.recordIntended(ctx)
	if err != nil {
		return 0, err
	}
	if err := d.pauseClusters(ctx); err != nil {
		return 0, err
	}
	if err := d.evaluate(ctx, waits); err != nil {
		return 0, err
	}
	if d.Seq != before {
		d.pollBackOff.Reset()
	}
	if isIdle(d.State) {
		d.idle = true
		return idlePoll, nil
	}
	return d.pollBackOff.NextBackOff(), nil
}

// selectedNames includes recorded Clusters that no longer match the selector.
func (d *drive) selectedNames(ctx context.Context) ([]string, error) {
	names := append(d.recordedNames(), d.State.Spec.Clusters...)
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

func (d *drive) prepare(ctx context.Context, names []string) error {
	if d.hold != nil && slices.Equal(names, d.names) {
		return nil
	}
	graph, err := d.runner.Finder.Graph(ctx, d.State.Spec.Namespace, names)
	if err != nil {
		return err
	}
	if d.hold == nil {
		d.hold = hold.NewPause(d.runner.Cluster, graph, d.holder())
	}
	d.hold.Graph, d.names = pausedGraph{graph, d}, names
	return nil
}

func (d *drive) holder() hold.Holder {
	return hold.PauseHolder(d.State.Spec.UID, d.State.Spec.Namespace, d.State.Spec.Name)
}

func (d *drive) pauseState() *pause.State {
	s := d.State
	out := &pause.State{Baseline: s.Baseline, PausedAt: s.PausedAt, Acks: make(map[object.Ref]pause.Signal, len(s.Acks))}
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

// recordIntended records new Clusters with their pause state before they are changed. waits are the
// Clusters whose holder admits no further holder.
func (d *drive) recordIntended(ctx context.Context) (waits []pause.PendingObject, err error) {
	known := d.recordedNames()
	if !slices.ContainsFunc(d.names, func(name string) bool { return !slices.Contains(known, name) }) {
		return nil, nil
	}
	found, err := d.hold.Inspect(ctx, nil)
	if err != nil {
		return nil, err
	}
	for ref, by := range found.Exclusive {
		waits = append(waits, pause.PendingObject{Ref: ref, Reason: hold.ErrHeld.Error() + " by " + by.Describe()})
	}
	o := request.Selected{Baseline: make(map[object.Ref]pause.Baseline), AckKinds: found.AckKinds}
	fresh := make(map[string]bool)
	for _, root := range found.Roots {
		if _, known := d.State.Root(root.Ref); !known {
			o.Roots, fresh[root.Ref.Name] = append(o.Roots, root.Root), true
		}
	}
	// The current state replaces a baseline from an earlier pause of the Cluster, even if it is empty.
	baseline := found.Baseline()
	for _, b := range found.Below {
		if now := baseline[b.Ref]; fresh[b.Cluster] && now != d.State.Baseline[b.Ref] {
			o.Baseline[b.Ref] = now
		}
	}
	return waits, d.decide(ctx, o)
}

func (d *drive) pauseClusters(ctx context.Context) error {
	if err := d.CheckClaim(d.runner.Incarnation); err != nil {
		return err
	}
	var done, again []object.Ref
	for _, root := range d.State.Roots {
		if d.State.Set[root.Ref] {
			continue
		}
		err := d.hold.Set(ctx, root)
		switch {
		case err == nil:
			done = append(done, root.Ref)
		case errors.Is(err, hold.ErrHeld), errors.Is(err, hold.ErrReplaced), errors.Is(err, hold.ErrChanged):
			again = append(again, root.Ref) // the record is obsolete; the next turn records the Cluster again
		default:
			return err
		}
	}
	if len(again) > 0 {
		return d.decide(ctx, request.Evaluated{Deleted: again})
	}
	return d.decide(ctx, request.Paused{Roots: done})
}

func (d *drive) recordFailure(ctx context.Context, err error) error {
	next := "scute retries; if the error persists, check the API server and the permissions of scuted: `scutectl doctor`"
	if d.State.Releasing && d.State.RestoredAt.IsZero() {
		next = fmt.Sprintf("scute retries, and deletes the Pause when that succeeds. To end the Pause by hand, remove annotations %s and %s from each "+
			"Cluster, set spec.paused as it was, and remove finalizer %s from the Pause",
			d.holder().Annotation, object.PausedBeforeAnnotation, "scute.dev/pause")
	}
	return d.decide(ctx, request.TransientFailure{Message: redact.Message(err.Error()), Next: next})
}

// decide records the events that follow from an observation. If another process has appended, it
// applies the new events and decides again.
func (d *drive) decide(ctx context.Context, o request.Observation) error {
	overtaken := func(ctx context.Context) error {
		d.conflicted = true
		return d.Refresh(ctx, d.runner.Incarnation)
	}
	return d.Decide(ctx, overtaken, func(s *request.State) ([]request.Event, error) { return request.Decide(s, o, d.Time()), nil })
}

func isIdle(s *request.State) bool {
	return s.Late || s.Phase == v1alpha1.PauseAcknowledged && s.Pending.Total == 0
}
