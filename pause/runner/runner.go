package runner

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/internal/redact"
	"scute.dev/internal/supervise"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/pause/hold"
	"scute.dev/pause/request"
)

// Finder finds what a pause selects.
type Finder interface {
	// Clusters are the names of the Clusters of a namespace that a label selector selects.
	Clusters(ctx context.Context, namespace, selector string) ([]string, error)
	// Graph is what belongs to Clusters of a namespace. Those that do not exist are passed over.
	Graph(ctx context.Context, namespace string, clusters []string) (hold.Graph, error)
}

// Runner drives pauses. Its fields are set before use and not changed.
type Runner struct {
	Log aggregate.Log
	// Incarnation names this very process; a restarted process has another.
	Incarnation string
	// Cluster has the Clusters, which Finder finds.
	Cluster *kube.Cluster
	Finder  Finder
	// Places bound the looks at once; nil is no bound.
	Places *supervise.Places
	Logger *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	supervise.Drivers

	resting atomic.Int64 // pauses that wait for their next look at rest
}

// drivenLimit bounds the pauses that are driven at once, most of which rest between two looks.
const drivenLimit = 1024

const (
	// While objects are waited for, the first looks follow one another quickly, then less and less often.
	lookFirst = 200 * time.Millisecond
	lookMax   = 2 * time.Second
	// A turn counts as lookLongest at most: the clock may be set, or the machine sleep, while it is taken.
	lookLongest = time.Minute
	// lookSlow is the least time between two looks at what is at rest, or did not acknowledge in time.
	lookSlow = 15 * time.Second
	// What failed is tried again after retryFirst, then less and less often.
	retryFirst = 500 * time.Millisecond
	retryMax   = 30 * time.Second
)

// Supervisor keeps every unfinished pause of a view driven. It is told of what changes in the view.
func (r *Runner) Supervisor(v *Pauses) *supervise.Supervisor {
	return &supervise.Supervisor{
		Noun: "pause", IDs: v.IDs, Due: v.due, Drive: r.Drive, Namespace: v.namespace, Limit: drivenLimit, Throttle: r.Throttle, Logger: r.Logger,
	}
}

func (r *Runner) root(id, actor string) *aggregate.Root[request.Event, *request.State] {
	return &aggregate.Root[request.Event, *request.State]{
		Log: r.Log, Catalog: request.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindPause, ID: id}, Actor: actor, Now: r.Now,
		Links: request.Links, State: new(request.State),
	}
}

// Request asks for a pause. Asking again for the same one changes nothing.
func (r *Runner) Request(ctx context.Context, id, actor string, spec request.Spec) error {
	err := r.root(id, actor).Append(ctx, request.Requested{Spec: spec})
	if errors.Is(err, eventlog.ErrConflict) {
		return nil // it is in the log already
	}
	return err
}

// Release records that a pause is to end. Saying it again, or of one that is not in the log, changes nothing.
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

// rest is how long a pause waits for its next look when so many are at rest, this one included. All of them together are looked at twice a
// second at most: a look lists every kind of a namespace.
func rest(pauses int64) time.Duration { return max(lookSlow, time.Duration(pauses)*time.Second/2) }

// Drive holds a pause until it is over, or until ctx ends. Another process's claim ends it with aggregate.ErrLost.
func (r *Runner) Drive(ctx context.Context, id string) error {
	root := r.root(id, "daemon/"+r.Incarnation)
	if err := root.Read(ctx); err != nil {
		return err
	}
	if root.State.Finished() || root.State.Phase == "" {
		return nil
	}
	if err := root.Append(ctx, request.Claimed{Holder: r.Incarnation}); err != nil {
		return err
	}
	news, stop := r.Listen(id)
	defer stop()
	d := &drive{Root: root, runner: r, news: news, place: r.Places.Place(root.State.Spec.Namespace), blocked: make(map[object.Ref]bool)}
	d.look, d.retry = supervise.Pace(lookFirst, lookMax), supervise.Pace(retryFirst, retryMax)
	for {
		if err := d.Refresh(ctx, r.Incarnation); err != nil {
			return err
		}
		before := d.Seq
		d.overtaken = false
		wait, err := d.turn(ctx, before)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, aggregate.ErrLost), errors.Is(err, eventlog.ErrUnavailable):
			return err
		case err != nil:
			r.Logger.Warn("a look at a pause failed", "pause", id, "error", redact.Message(err.Error()))
			if err := d.failed(ctx, err); err != nil {
				return err
			}
			wait = d.retry.NextBackOff()
		default:
			d.retry.Reset()
		}
		if d.State.Finished() {
			return nil
		}
		if d.overtaken {
			continue // the news that would end the wait has been taken in
		}
		if err := d.sleep(ctx, wait); err != nil {
			return err
		}
	}
}
