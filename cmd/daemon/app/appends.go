package app

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"scute.dev/eventlog"
)

// appends measures the commits that this process appends to the event log. Each process counts only its own commits, so that sums over replicas are
// right.
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

// failures returns the reasons of failures. The first one that matches an error applies.
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

// observe records the duration and the result of an append. A nil receiver records nothing.
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

// collectors returns the metrics.
func (a *appends) collectors() []prometheus.Collector {
	return []prometheus.Collector{a.duration, a.failures, a.events}
}
