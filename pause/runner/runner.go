package runner

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/internal/fair"
	"scute.dev/internal/redact"
	"scute.dev/internal/supervise"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/pause/hold"
	"scute.dev/pause/request"
)

// Finder finds the objects that a pause selects.
type Finder interface {
	// Clusters returns the names of the Clusters of a namespace that match a label selector.
	Clusters(ctx context.Context, namespace, selector string) ([]string, error)
	// Graph returns the objects of Clusters of a namespace. It skips Clusters that do not exist.
	Graph(ctx context.Context, namespace string, clusters []string) (hold.Graph, error)
}

// Runner drives pauses. Set its fields before use.
type Runner struct {
	Log aggregate.Log
	// Incarnation identifies this process. It changes with each restart.
	Incarnation string
	Cluster     *kube.Cluster
	Finder      Finder
	// Slots limit the concurrent turns; nil means no limit.
	Slots  *fair.Slots
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	supervise.Drivers

	idle atomic.Int64 // idle pauses that wait for their next turn
}

// maxDriven limits the pauses that are driven concurrently. Most of them wait for their next turn.
const maxDriven = 1024

const (
	// firstPoll and longestPoll are the first and longest wait between turns while objects are pending.
	firstPoll   = 200 * time.Millisecond
	longestPoll = 2 * time.Second
	// maxTurn bounds the measured duration of a turn, because the clock may be set or the machine
	// suspended meanwhile.
	maxTurn = time.Minute
	// idlePoll is the minimum wait of an idle pause.
	idlePoll = 15 * time.Second
	// firstRetry and longestRetry are the first and longest delay after a failed turn.
	firstRetry   = 500 * time.Millisecond
	longestRetry = 30 * time.Second
)

// Supervisor returns a supervisor that drives every unfinished pause of a view. The caller must
// notify it about changes of the view.
func (r *Runner) Supervisor(v *Pauses) *supervise.Supervisor {
	return &supervise.Supervisor{
		Noun: "pause", IDs: v.IDs, Due: v.Due, Drive: r.Drive, Drivers: &r.Drivers, Limit: maxDriven, Logger: r.Logger,
	}
}

func (r *Runner) root(id, actor string) *aggregate.Root[request.Event, *request.State] {
	return &aggregate.Root[request.Event, *request.State]{
		Log: r.Log, Catalog: request.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindPause, ID: id}, Actor: actor, Now: r.Now,
		Links: request.Links, State: new(request.State),
	}
}

// Request records the request for a pause. It is idempotent.
func (r *Runner) Request(ctx context.Context, id, actor string, spec request.Spec) error {
	return r.root(id, actor).Create(ctx, request.Requested{Spec: spec})
}

// Release records that a pause must end. It does nothing if that is already recorded or if the
// pause is not in the log.
func (r *Runner) Release(ctx context.Context, id, actor, reason string) error {
	root := r.root(id, actor)
	if err := root.Read(ctx); err != nil || root.Seq == 0 {
		return err
	}
	return root.Decide(ctx, root.Read, func(s *request.State) ([]request.Event, error) {
		if s.Releasing || s.Finished() {
			return nil, nil
		}
		return []request.Event{request.ReleaseRequested{Reason: reason}}, nil
	})
}

// idleInterval returns how long an idle pause waits. All idle pauses together have at most two
// turns a second, because a turn lists every kind of a namespace.
func idleInterval(pauses int64) time.Duration {
	return max(idlePoll, time.Duration(pauses)*time.Second/2)
}

// Drive drives a pause until it is over or ctx ends. It returns aggregate.ErrClaimLost if another
// process claims the pause.
func (r *Runner) Drive(ctx context.Context, id string) error {
	root := r.root(id, "daemon/"+r.Incarnation)
	if err := root.Read(ctx); err != nil {
		return err
	}
	if !isDue(root.State) {
		return nil
	}
	if err := root.Append(ctx, request.Claimed{Holder: r.Incarnation}); err != nil {
		return err
	}
	news, stop := r.Subscribe(id)
	defer stop()
	d := &drive{Root: root, runner: r, news: news, slot: r.Slots.Slot(root.State.Spec.Namespace), blocked: make(map[object.Ref]bool)}
	d.pollBackOff, d.retryBackOff = supervise.NewBackOff(firstPoll, longestPoll), supervise.NewBackOff(firstRetry, longestRetry)
	for {
		if err := d.Refresh(ctx, r.Incarnation); err != nil {
			return err
		}
		before := d.Seq
		d.conflicted = false
		wait, err := d.turn(ctx, before)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, aggregate.ErrClaimLost), errors.Is(err, eventlog.ErrUnavailable):
			return err
		case err != nil:
			r.Logger.Warn("reconciling a pause failed", "pause", id, "error", redact.Message(err.Error()))
			if err := d.recordFailure(ctx, err); err != nil {
				return err
			}
			wait = d.retryBackOff.NextBackOff()
		default:
			d.retryBackOff.Reset()
		}
		if d.State.Finished() {
			return nil
		}
		if d.conflicted {
			continue // do not sleep: the events that would end the sleep are already applied
		}
		if err := d.sleep(ctx, wait); err != nil {
			return err
		}
	}
}
