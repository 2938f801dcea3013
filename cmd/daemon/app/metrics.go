package app

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"scute.dev/eventlog"
	"scute.dev/internal/projection"
	"scute.dev/internal/trust"
)

// registerMetrics adds scute's own figures to those of the controllers: moves, runs and remediations by phase, tasks by how
// they stand, and how full the log is.
func registerMetrics(v *projection.View, log *eventlog.Log, stored *unreadable, shut func() *trust.Fault) {
	c := newCollector(v, log, stored)
	c.shut = shut
	var again prometheus.AlreadyRegisteredError
	if err := metrics.Registry.Register(c); errors.As(err, &again) {
		metrics.Registry.Unregister(again.ExistingCollector) // a second daemon in one process, in a test
		metrics.Registry.MustRegister(c)
	}
}

func newCollector(v *projection.View, log *eventlog.Log, stored *unreadable) *collector {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("scute_"+name, help, labels, nil)
	}
	return &collector{
		view: v, log: log, stored: stored,
		moves:     describe("moves", "Moves that are not over or ended in the open epoch of the event log, by phase.", "phase"),
		runs:      describe("runs", "Runs of workflows that are not over or ended in the open epoch of the event log, by phase.", "phase"),
		tasks:     describe("tasks", "Tasks of these runs, by how they stand.", "outcome"),
		remedies:  describe("remediations", "Machines that are under remediation or wait for it, by phase.", "phase"),
		unhealthy: describe("machines_unhealthy", "Machines that are marked as unhealthy, or as about to be."),
		etcd:      describe("etcd_problems", "Control planes whose etcd has a problem, by the kind of problem.", "problem"),
		effects:   describe("effects_in_flight", "Attempts, undos and handlers of runs that are being performed."),
		unread:    describe("resources_unreadable", "Stored resources that cannot be read, by kind: each says so in its condition Readable.", "kind"),
		commits:   describe("log_commits", "Commits in the event log."),
		bytes:     describe("log_bytes", "Size of the open epoch of the event log."),
		maxBytes:  describe("log_max_bytes", "Size at which the event log refuses new events."),
		epoch:     describe("log_epoch", "Number of the open epoch of the event log."),
		closed:    describe("log_closed_bytes", "Size of the closed epochs of the event log."),
		distrust:  describe("log_untrusted", "1 while nothing is driven because the event log went back, was replaced, or belongs to another cluster.", "reason"),
		begins:    describe("log_accepts_new", "1 while new moves and runs can begin; 0 when the rest of the event log is kept for those that have begun."),
	}
}

type collector struct {
	view                                    *projection.View
	log                                     *eventlog.Log
	stored                                  *unreadable
	moves, runs, tasks, remedies, unhealthy *prometheus.Desc
	effects, commits, bytes, maxBytes       *prometheus.Desc
	begins, distrust, unread, etcd          *prometheus.Desc
	epoch, closed                           *prometheus.Desc
	shut                                    func() *trust.Fault
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, n, labels...)
	}
	phases := make(map[string]int)
	for _, id := range c.view.Moves.IDs() {
		if s, ok := c.view.Moves.Status(id); ok {
			phases[string(s.Phase)]++
		}
	}
	for phase, n := range phases {
		gauge(c.moves, float64(n), phase)
	}
	if c.shut != nil {
		if f := c.shut(); f != nil {
			gauge(c.distrust, 1, string(f.Reason))
		}
	}
	runs := c.view.Runs.Totals()
	for phase, n := range runs.Phases {
		gauge(c.runs, float64(n), string(phase))
	}
	t := runs.Tasks
	for outcome, n := range map[string]int{
		"succeeded": t.Succeeded, "ignored": t.Ignored, "skipped": t.Skipped, "failed": t.Failed, "paused": t.Paused, "running": t.Running, "undone": t.Undone,
	} {
		gauge(c.tasks, float64(n), outcome)
	}
	unhealthy := 0
	for phase, n := range c.view.Remediations.Phases() {
		gauge(c.remedies, float64(n), string(phase))
		unhealthy += n
	}
	gauge(c.unhealthy, float64(unhealthy))
	for kind, n := range c.view.Remediations.EtcdProblems() {
		gauge(c.etcd, float64(n), string(kind))
	}
	gauge(c.effects, float64(runs.InFlight))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for kind, n := range c.stored.count(ctx) {
		gauge(c.unread, float64(n), kind)
	}
	stats, err := c.log.Stats(ctx)
	if err != nil {
		return // /readyz says so
	}
	gauge(c.commits, float64(stats.Commits))
	gauge(c.bytes, float64(stats.Bytes))
	gauge(c.maxBytes, float64(stats.MaxBytes))
	gauge(c.epoch, float64(stats.Epoch))
	gauge(c.closed, float64(stats.ClosedBytes))
	accepts := 0.0
	if stats.AcceptsNew() {
		accepts = 1
	}
	gauge(c.begins, accepts)
}
