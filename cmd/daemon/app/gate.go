package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/eventlog"
	"scute.dev/internal/trust"
)

// gateLooks is how often a log that may not be acted on is judged again.
const gateLooks = 2 * time.Second

// gate keeps everything still until the log may be acted on: it is the one that acted last on this management cluster, and holds
// all that it acknowledged. It opens once, and then the process acts until it ends: a log that goes back later ends it.
type gate struct {
	log  *eventlog.Log
	view *trust.View
	// caughtUp is closed when the view holds all that the log held at the start.
	caughtUp <-chan struct{}
	marked   *marked
	// lease is nil without leader election; then the statuses alone say how far the log was.
	lease    *lease
	statuses *survey
	reader   client.Reader // reads the management cluster itself, not a cache of it
	report   *report
	actor    string
	logger   *slog.Logger

	open chan struct{}

	mu    sync.Mutex
	fault *trust.Fault
}

// shut is why the gate is closed: nil while it is open, or not judged yet.
func (g *gate) shut() *trust.Fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault
}

// run opens the gate as soon as the log may be acted on. It is run by the process that acts.
func (g *gate) run(ctx context.Context) error {
	select {
	case <-g.caughtUp:
	case <-ctx.Done():
		return nil
	}
	tick := time.NewTicker(gateLooks)
	defer tick.Stop()
	for {
		fault, err := g.judge(ctx)
		switch {
		case err != nil:
			g.logger.Warn("the event log cannot be judged yet; nothing is driven", "error", err)
		case fault == nil:
			g.logger.Info("acting on the event log", "logId", g.log.ID())
			close(g.open)
			return nil
		}
		if err := g.tell(ctx, fault); err != nil {
			g.logger.Warn("saying what is wrong with the event log", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// tell says why nothing is driven: at once, and on everything that waits for it.
func (g *gate) tell(ctx context.Context, fault *trust.Fault) error {
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
	return g.report.stall(ctx, fault)
}

// judge says why the log may not be acted on. If it may, the log belongs to this cluster, and the mark follows it, from then on.
func (g *gate) judge(ctx context.Context) (*trust.Fault, error) {
	cluster, err := clusterID(ctx, g.reader)
	if err != nil {
		return nil, err
	}
	var marks trust.Marks
	if g.lease != nil {
		if marks.Lease, marks.Reconciled, err = g.lease.mark(ctx); err != nil {
			return nil, err
		}
	}
	if marks.Statuses, err = g.statuses.mark(ctx, time.Now()); err != nil {
		return nil, err
	}
	head, err := g.log.Head(ctx) // after the marks: another process that acts on the log may raise all of them
	if err != nil {
		return nil, err
	}
	state, seq := g.view.State()
	if fault := trust.Judge(&state, trust.Identity{LogID: g.log.ID(), Head: head, Cluster: cluster}, marks); fault != nil {
		return fault, nil
	}
	if state.Cluster == "" {
		if head, err = g.bind(ctx, cluster, seq); err != nil {
			return nil, err
		}
	}
	g.marked.saw(head)
	if g.lease != nil {
		if err := g.lease.follow(ctx, head, state.LastReconciled()); err != nil {
			return nil, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault = nil
	return nil, nil
}

// bind records which management cluster the log belongs to. When another daemon was first, its word counts.
func (g *gate) bind(ctx context.Context, cluster string, seq uint64) (uint64, error) {
	c, err := trust.Commit(trust.Bound{Cluster: cluster}, g.actor, seq, time.Now())
	if err != nil {
		return 0, err
	}
	receipt, err := g.log.Append(ctx, c)
	if errors.Is(err, eventlog.ErrConflict) {
		return 0, errors.New("another daemon is taking up the log")
	}
	return receipt.Seq, err
}

// clusterID is the ID of a management cluster: the UID of its namespace kube-system.
func clusterID(ctx context.Context, reader client.Reader) (string, error) {
	var ns corev1.Namespace
	if err := reader.Get(ctx, client.ObjectKey{Name: "kube-system"}, &ns); err != nil {
		return "", fmt.Errorf("reading namespace kube-system, whose UID is the ID of the management cluster: %w", err)
	}
	return string(ns.UID), nil
}

// watchOthers says once that another installation acts on the same management cluster.
func watchOthers(ctx context.Context, other func() error, every time.Duration, say func(error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := other()
		if err != nil && err.Error() != said {
			said = err.Error()
			say(err)
		}
	}
}
