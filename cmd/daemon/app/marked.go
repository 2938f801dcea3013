package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
)

// watermarkLog is the log to which the domains append. After some commits, a process does something
// that cannot be undone: after a claim, which precedes all effects, and after a point of no return.
// For such a commit, Append raises the high-water mark outside of the log before it returns. For
// all other commits, the next renewal of the Lease raises the mark. Append fails if another process
// may already lead, because that process would make decisions without knowing the commit.
type watermarkLog struct {
	aggregate.Log
	raiseWatermark func(ctx context.Context, seq uint64) error
	tenure         *tenure
	appends        *appends
	acked          atomic.Uint64
}

// irreversibleEvents are the types of events for which Append raises the high-water mark before it
// returns.
var irreversibleEvents = []string{ //nolint:gochecknoglobals // a constant
	".claimed.v",
	"dev.scute.move.verified.v",
	"dev.scute.move.source-emptied.v",
	"dev.scute.remediation.handed-over.v",
}

// Append implements aggregate.Log.
func (m *watermarkLog) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	if err := m.tenure.check(); err != nil {
		return eventlog.Receipt{}, fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
	}
	began := time.Now()
	receipt, err := m.Log.Append(ctx, c)
	m.appends.observe(c, time.Since(began), err)
	if err != nil {
		return receipt, err
	}
	m.recordSequence(receipt.Seq)
	if !slices.ContainsFunc(c.Events, isIrreversible) {
		return receipt, nil
	}
	if err := m.raiseWatermark(ctx, receipt.Seq); err != nil {
		return receipt, fmt.Errorf("%w: commit %d is stored, but not yet acted on: %w", eventlog.ErrUnavailable, receipt.Seq, err)
	}
	return receipt, nil
}

func isIrreversible(e eventlog.Event) bool {
	return slices.ContainsFunc(irreversibleEvents, func(t string) bool { return strings.Contains(e.Type, t) })
}

func (m *watermarkLog) recordSequence(seq uint64) {
	for old := m.acked.Load(); seq > old && !m.acked.CompareAndSwap(old, seq); old = m.acked.Load() {
	}
}

func (m *watermarkLog) head() uint64 { return m.acked.Load() }

// appends measures only the commits of this process, so that sums over all replicas are correct.
type appends struct {
	duration prometheus.Histogram
	failures *prometheus.CounterVec
	events   *prometheus.CounterVec
}

func newAppends() *appends {
	a := &appends{
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "scute_log_append_duration_seconds", Help: "Time it took to append a commit to the event log, including appends that failed.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scute_log_append_failures_total",
			Help: "Commits that were not appended to the event log, by reason. A conflict is not a fault: another client was first, and the decision is made again.",
		}, []string{"reason"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scute_events_total", Help: "Events that this process appended to the event log, by type.",
		}, []string{"type"}),
	}
	for _, f := range failures() {
		a.failures.WithLabelValues(f.reason)
	}
	a.failures.WithLabelValues(otherFailure)
	return a
}

type failure struct {
	err    error
	reason string
}

const otherFailure = "Other"

// failures returns the reasons for a failed append. The first entry that matches an error applies.
func failures() []failure {
	return []failure{
		{eventlog.ErrConflict, "Conflict"},
		{eventlog.ErrFull, "Full"},
		{eventlog.ErrFrozen, "Frozen"},
		{eventlog.ErrDenied, "Denied"},
		{eventlog.ErrPermission, "Denied"},
		{eventlog.ErrTooLarge, "TooLarge"},
		{eventlog.ErrMissing, "Missing"},
		{eventlog.ErrGap, "Gap"},
		{eventlog.ErrConfig, "Config"},
		{eventlog.ErrUnavailable, "Unavailable"},
	}
}

// observe records an append. On a nil receiver it does nothing.
func (a *appends) observe(c eventlog.Commit, took time.Duration, err error) {
	if a == nil {
		return
	}
	a.duration.Observe(took.Seconds())
	if err == nil {
		for i := range c.Events {
			a.events.WithLabelValues(c.Events[i].Type).Inc()
		}
		return
	}
	for _, f := range failures() {
		if errors.Is(err, f.err) {
			a.failures.WithLabelValues(f.reason).Inc()
			return
		}
	}
	a.failures.WithLabelValues(otherFailure).Inc()
}

func (a *appends) collectors() []prometheus.Collector {
	return []prometheus.Collector{a.duration, a.failures, a.events}
}
