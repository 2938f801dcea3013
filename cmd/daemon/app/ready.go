package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"scute.dev/eventlog"
	"scute.dev/view"
)

const (
	// stalledAfter is how long the view may make no progress while it is behind the end of the log.
	stalledAfter       = 30 * time.Second
	storeCheckInterval = 5 * time.Second
)

// readiness implements /readyz: the log must accept commits, and the view must follow the log.
type readiness struct {
	log interface {
		store
		Head(ctx context.Context) (uint64, error)
	}
	caughtUp <-chan struct{}
	position func() uint64
	// checkOther returns an error if this installation must not act on this management cluster.
	checkOther func() error
	now        func() time.Time

	mu           sync.Mutex
	lastPosition uint64 // position of the view at its last change
	since        time.Time
}

// register adds /readyz. It also adds the runnable that ends this process when a frozen log can be
// opened again, because only a new process can open it.
func (r *readiness) register(m interface {
	Add(run manager.Runnable) error
	AddReadyzCheck(name string, check healthz.Checker) error
}, logger *slog.Logger,
) error {
	return errors.Join(
		m.AddReadyzCheck("log", r.check),
		m.Add(always(func(ctx context.Context) error { return monitorStore(ctx, r.log, storeCheckInterval, logger) })),
	)
}

// check implements healthz.Checker.
func (r *readiness) check(request *http.Request) error {
	select {
	case <-r.caughtUp:
	default:
		return errors.New("still replaying the event log")
	}
	if err := r.log.Health(request.Context()); err != nil {
		return err
	}
	head, err := r.log.Head(request.Context())
	if err != nil {
		return err
	}
	return errors.Join(r.checkProgress(head), r.checkOther())
}

// checkProgress returns an error if the view is behind the log and no longer advances.
func (r *readiness) checkProgress(head uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	position, now := r.position(), r.now()
	if position >= head || position != r.lastPosition || r.since.IsZero() {
		r.lastPosition, r.since = position, now
		return nil
	}
	if stood := now.Sub(r.since); stood > stalledAfter {
		return fmt.Errorf("the view has been at commit %d of %d for %s: following the event log has stalled", position, head, view.Duration(stood.Round(time.Second)))
	}
	return nil
}

type store interface {
	Health(ctx context.Context) error
	CheckWritable() error
}

// monitorStore ends this process when an embedded log has frozen, which happens when a write to the
// disk fails: only a new process can open the log again. It first waits until the disk accepts
// writes, because otherwise the log would freeze again at the first commit of the new process.
func monitorStore(ctx context.Context, log store, every time.Duration, logger *slog.Logger) error {
	frozen := false
	err := wait.PollUntilContextCancel(ctx, every, false, func(ctx context.Context) (bool, error) {
		err := log.Health(ctx)
		if !errors.Is(err, eventlog.ErrFrozen) {
			return false, nil
		}
		if full := log.CheckWritable(); full == nil {
			return false, fmt.Errorf("the disk of the event log accepts writes again: restarting the process to reopen the log: %w", err)
		} else if !frozen {
			logger.Error("the event log accepts no commits; nothing is done until its volume has space", "error", err, "probe", full)
		}
		frozen = true
		return false, nil
	})
	if ctx.Err() == nil {
		return err
	}
	return nil
}
