package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/internal/trust"
)

// registerMetrics registers scute's metrics beside those of the controllers: moves, runs and remediations by phase, tasks by state, and the size of
// the log.
func registerMetrics(v *views, log *eventlog.Log, stored *resourceCounter, shut func() *trust.Fault, version string) {
	c := newCollector(v, log, stored)
	c.currentFault, c.version = shut, version
	reregister(c)
}

func newCollector(v *views, log *eventlog.Log, stored *resourceCounter) *collector {
	var all []*prometheus.Desc
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		all = append(all, prometheus.NewDesc("scute_"+name, help, labels, nil))
		return all[len(all)-1]
	}
	c := &collector{
		view: v, log: log, stored: stored,
		moves:        describe("moves", "Moves that are in progress or ended recently, by phase.", "phase"),
		runs:         describe("runs", "Runs of workflows that are in progress or ended recently, by phase.", "phase"),
		tasks:        describe("tasks", "Tasks of these runs, by outcome.", "outcome"),
		remediations: describe("remediations", "Machines that are being remediated or wait for remediation, by phase.", "phase"),
		unhealthy:    describe("machines_unhealthy", "Machines that are marked as unhealthy, or as about to become unhealthy."),
		etcd:         describe("etcd_problems", "Control planes whose etcd has a problem, by the kind of problem.", "problem"),
		effects:      describe("effects_in_flight", "Attempts, undos and handlers of runs in progress."),
		build:        describe("build_info", "Always 1, with the version of this process as a label.", "version"),
		stalled:      describe("resources_stalled", "Resources whose condition Stalled is True, by kind: they need an operator, or did not end as requested.", "kind"),
		since:        describe("resources_stalled_timestamp_seconds", "When the first of these stalled, by kind.", "kind"),
		backups:      describe("backup_last_success_timestamp_seconds", "When the last backup of a BackupSchedule was complete.", "namespace", "name"),
		unreadable:   describe("resources_unreadable", "Stored resources that cannot be read, by kind: the condition Readable of each is False.", "kind"),
		commits:      describe("log_commits", "Commits in the event log."),
		bytes:        describe("log_bytes", "Size of the event log."),
		maxBytes:     describe("log_max_bytes", "Size at which the event log refuses new events."),
		untrusted:    describe("log_untrusted", "1 while nothing is driven because the event log went back, was replaced, or belongs to another cluster.", "reason"),
		acceptsNew:   describe("log_accepts_new", "1 while new moves and runs can start; 0 when the remaining space of the event log is reserved for those in progress."),
	}
	c.all = all
	return c
}

type collector struct {
	view                                        *views
	log                                         *eventlog.Log
	stored                                      *resourceCounter
	moves, runs, tasks, remediations, unhealthy *prometheus.Desc
	effects, commits, bytes, maxBytes           *prometheus.Desc
	acceptsNew, untrusted, unreadable, etcd     *prometheus.Desc
	build                                       *prometheus.Desc
	stalled, since, backups                     *prometheus.Desc
	all                                         []*prometheus.Desc
	version                                     string
	currentFault                                func() *trust.Fault
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.all {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, n, labels...)
	}
	gauge(c.build, 1, c.version)
	phases := make(map[v1alpha1.MovePhase]int)
	for _, id := range c.view.Moves.IDs() {
		if s, ok := c.view.Moves.Status(id); ok {
			phases[s.Phase]++
		}
	}
	byPhase(phases, movePhases(), func(phase string, n int) { gauge(c.moves, float64(n), phase) })
	if c.currentFault != nil {
		if f := c.currentFault(); f != nil {
			gauge(c.untrusted, 1, string(f.Reason))
		}
	}
	runs := c.view.Runs.Totals()
	byPhase(runs.Phases, runPhases(), func(phase string, n int) { gauge(c.runs, float64(n), phase) })
	t := runs.Tasks
	for outcome, n := range map[string]int{
		"succeeded": t.Succeeded, "ignored": t.Ignored, "skipped": t.Skipped, "failed": t.Failed, "paused": t.Paused, "running": t.Running, "undone": t.Undone,
	} {
		gauge(c.tasks, float64(n), outcome)
	}
	unhealthy := 0
	byPhase(c.view.Remediations.Phases(), remediationPhases(), func(phase string, n int) {
		gauge(c.remediations, float64(n), phase)
		unhealthy += n
	})
	gauge(c.unhealthy, float64(unhealthy))
	byPhase(c.view.Remediations.EtcdProblems(), etcdProblems(), func(problem string, n int) { gauge(c.etcd, float64(n), problem) })
	gauge(c.effects, float64(runs.InFlight))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for kind, t := range c.stored.count(ctx) {
		gauge(c.unreadable, float64(t.unreadable), kind)
		gauge(c.stalled, float64(t.stalled), kind)
		if t.stalled > 0 {
			gauge(c.since, seconds(t.since), kind)
		}
		for _, b := range t.backups {
			gauge(c.backups, seconds(b.at), b.namespace, b.name)
		}
	}
	stats, err := c.log.Stats(ctx)
	if err != nil {
		return // /readyz reports the error
	}
	gauge(c.commits, float64(stats.Commits))
	gauge(c.bytes, float64(stats.Bytes))
	gauge(c.maxBytes, float64(stats.MaxBytes))
	accepts := 0.0
	if stats.AcceptsNew() {
		accepts = 1
	}
	gauge(c.acceptsNew, accepts)
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
