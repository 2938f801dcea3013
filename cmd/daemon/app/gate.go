package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/eventlog"
	"scute.dev/internal/trust"
)

// gateInterval is the interval between checks while the gate is closed.
const gateInterval = 2 * time.Second

// gate blocks all work until this process may use the log. The log must be the one that this
// management cluster used last, and must contain all commits that the log acknowledged to it. The
// gate opens once. If the log loses commits after that, the process ends.
type gate struct {
	log  *eventlog.Log
	view *trust.View
	// caughtUp is closed when the view contains all commits that the log had at the start.
	caughtUp    <-chan struct{}
	watermarked *watermarkLog
	// lease is nil without leader election. In that case only the statuses contain a high-water mark.
	lease    *lease
	statuses *survey
	reader   client.Reader // not cached
	report   *report
	actor    string
	logger   *slog.Logger

	open chan struct{}

	mu    sync.Mutex
	fault *trust.Fault
}

// currentFault returns why the gate is closed. It returns nil if the gate is open or nothing was
// checked yet.
func (g *gate) currentFault() *trust.Fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault
}

// run opens the gate as soon as this process may use the log. It runs only in the leader.
func (g *gate) run(ctx context.Context) error {
	select {
	case <-g.caughtUp:
	case <-ctx.Done():
		return nil
	}
	_ = wait.PollUntilContextCancel(ctx, gateInterval, true, func(ctx context.Context) (bool, error) { // returns an error only when ctx has ended
		fault, err := g.check(ctx)
		switch {
		case err != nil:
			g.logger.Warn("the event log could not be checked yet; nothing is driven", "error", err)
		case fault == nil:
			g.logger.Info("acting on the event log", "logId", g.log.ID())
			close(g.open)
			return true, nil
		}
		if err := g.announce(ctx, fault); err != nil {
			g.logger.Warn("reporting the fault of the event log", "error", err)
		}
		return false, nil
	})
	return nil
}

// announce logs why the gate is closed and records an event, once per reason. It also writes the
// reason into the statuses of all unfinished objects.
func (g *gate) announce(ctx context.Context, fault *trust.Fault) error {
	if fault == nil {
		return nil
	}
	g.mu.Lock()
	again := g.fault != nil && *g.fault == *fault
	g.fault = fault
	g.mu.Unlock()
	if !again {
		g.logger.Error("the event log may not be acted on; nothing is driven", "reason", fault.Reason, "message", fault.Message, "next", fault.Next)
		g.report.event(string(fault.Reason), fault.Message+"; "+fault.Next)
	}
	return g.report.writeStalled(ctx, fault)
}

// check returns why this process may not use the log. If it may, check binds the log to this
// cluster and sets the high-water mark.
func (g *gate) check(ctx context.Context) (*trust.Fault, error) {
	cluster, err := clusterID(ctx, g.reader)
	if err != nil {
		return nil, err
	}
	var marks trust.Watermarks
	if g.lease != nil {
		if marks.Lease, marks.Reconciled, err = g.lease.watermark(ctx); err != nil {
			return nil, err
		}
	}
	if marks.Statuses, err = g.statuses.watermark(ctx, time.Now()); err != nil {
		return nil, err
	}
	head, err := g.log.Head(ctx) // read after the marks: another leader may raise both
	if err != nil {
		return nil, err
	}
	state, seq := g.view.State()
	if fault := trust.Check(&state, trust.Identity{LogID: g.log.ID(), Head: head, Cluster: cluster}, marks); fault != nil {
		return fault, nil
	}
	if state.Cluster == "" {
		if head, err = g.bind(ctx, cluster, seq); err != nil {
			return nil, err
		}
	}
	g.watermarked.recordSequence(head)
	if g.lease != nil {
		if err := g.lease.setWatermark(ctx, head, state.LastReconciled()); err != nil {
			return nil, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault = nil
	return nil, nil
}

// bind records in the log which management cluster it belongs to. It fails if another daemon has
// done so first.
func (g *gate) bind(ctx context.Context, cluster string, seq uint64) (uint64, error) {
	c, err := trust.Commit(trust.Bound{Cluster: cluster}, g.actor, seq, time.Now())
	if err != nil {
		return 0, err
	}
	receipt, err := g.log.Append(ctx, c)
	if errors.Is(err, eventlog.ErrConflict) {
		return 0, errors.New("another daemon is taking over the log")
	}
	return receipt.Seq, err
}

// clusterID returns the UID of namespace kube-system, which identifies the management cluster.
func clusterID(ctx context.Context, reader client.Reader) (string, error) {
	var ns corev1.Namespace
	if err := reader.Get(ctx, client.ObjectKey{Name: "kube-system"}, &ns); err != nil {
		return "", fmt.Errorf("reading namespace kube-system, whose UID is the ID of the management cluster: %w", err)
	}
	return string(ns.UID), nil
}

// watchOthers calls say once for each other installation that leads on this management cluster.
// other returns an error that describes such an installation.
func watchOthers(ctx context.Context, other func() error, every time.Duration, say func(error)) error {
	said := ""
	wait.UntilWithContext(ctx, func(context.Context) {
		if err := other(); err != nil && err.Error() != said {
			said = err.Error()
			say(err)
		}
	}, every)
	return nil
}

// surveyAge is how long the result of a survey is reused, because a survey reads all objects, while
// a closed gate checks the log every two seconds.
const surveyAge = 30 * time.Second

// survey reads the high-water mark of the log from the statuses of scute's resources.
type survey struct {
	reader client.Reader
	logID  string
	kinds  []string

	last   trust.Watermark
	readAt time.Time
}

// newSurvey returns a survey of the kinds that this daemon may list.
func newSurvey(reader client.Reader, logID string, remediation bool) *survey {
	s := &survey{reader: reader, logID: logID, kinds: []string{trust.Moves, trust.WorkflowRuns, trust.Pauses, trust.Schedules}}
	if remediation {
		s.kinds = append(s.kinds, trust.Remediations)
	}
	return s
}

// watermark returns the high-water mark in the statuses. The result is at most surveyAge old.
func (s *survey) watermark(ctx context.Context, now time.Time) (trust.Watermark, error) {
	if !s.readAt.IsZero() && now.Sub(s.readAt) < surveyAge {
		return s.last, nil
	}
	mark, err := trust.HighestMark(ctx, s.reader, s.logID, s.kinds...)
	if err != nil {
		return trust.Watermark{}, err
	}
	s.last, s.readAt = mark, now
	return mark, nil
}
