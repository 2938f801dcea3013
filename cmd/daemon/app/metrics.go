package app

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/internal/trust"
	"scute.dev/mover"
)

func registerMetrics(v *views, log *eventlog.Log, stored *resourceCounter, shut func() *trust.Fault, version string) {
	c := newCollector(v, log, stored)
	c.fault, c.version = shut, version
	reregister(c)
}

type collector struct {
	view    *views
	log     *eventlog.Log
	stored  *resourceCounter
	version string
	// fault returns why the gate is closed, or nil if it is open. The function itself may be nil.
	fault func() *trust.Fault
	descs map[string]*prometheus.Desc // by name without the prefix
}

func newCollector(v *views, log *eventlog.Log, stored *resourceCounter) *collector {
	c := &collector{view: v, log: log, stored: stored, descs: make(map[string]*prometheus.Desc)}
	describe := func(name, help string, labels ...string) {
		c.descs[name] = prometheus.NewDesc("scute_"+name, help, labels, nil)
	}
	describe("moves", "Moves that are in progress or ended recently, by phase.", "phase")
	describe("runs", "Runs of workflows that are in progress or ended recently, by phase.", "phase")
	describe("tasks", "Tasks of these runs, by outcome.", "outcome")
	describe("remediations", "Machines that are being remediated or wait for remediation, by phase.", "phase")
	describe("machines_unhealthy", "Machines that are marked as unhealthy, or as about to become unhealthy.")
	describe("etcd_problems", "Control planes whose etcd has a problem, by the kind of problem.", "problem")
	describe("effects_in_flight", "Attempts, undos and handlers of runs in progress.")
	describe("build_info", "Always 1, with the version of this process as a label.", "version")
	describe("resources_stalled", "Resources whose condition Stalled is True, by kind: they need an operator, or did not end as requested.", "kind")
	describe("resources_stalled_timestamp_seconds", "When the first of these stalled, by kind.", "kind")
	describe("backup_last_success_timestamp_seconds", "When the last backup of a BackupSchedule was complete.", "namespace", "name")
	describe("resources_unreadable", "Stored resources that cannot be read, by kind: the condition Readable of each is False.", "kind")
	describe("log_commits", "Commits in the event log.")
	describe("log_bytes", "Size of the event log.")
	describe("log_max_bytes", "Size at which the event log refuses new events.")
	describe("log_untrusted", "1 while nothing is driven because the event log went back, was replaced, or belongs to another cluster.", "reason")
	describe("log_accepts_new", "1 while new moves and runs can start; 0 when the remaining space of the event log is reserved for those in progress.")
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(name string, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(c.descs[name], prometheus.GaugeValue, n, labels...)
	}
	gauge("build_info", 1, c.version)
	phases := make(map[v1alpha1.MovePhase]int)
	for _, id := range c.view.Moves.IDs() {
		if s, ok := c.view.Moves.Status(id); ok {
			phases[s.Phase]++
		}
	}
	byPhase(phases, movePhases(), func(phase string, n int) { gauge("moves", float64(n), phase) })
	if c.fault != nil {
		if f := c.fault(); f != nil {
			gauge("log_untrusted", 1, string(f.Reason))
		}
	}
	runs := c.view.Runs.Totals()
	byPhase(runs.Phases, runPhases(), func(phase string, n int) { gauge("runs", float64(n), phase) })
	t := runs.Tasks
	for outcome, n := range map[string]int{
		"succeeded": t.Succeeded, "ignored": t.Ignored, "skipped": t.Skipped, "failed": t.Failed, "paused": t.Paused, "running": t.Running, "undone": t.Undone,
	} {
		gauge("tasks", float64(n), outcome)
	}
	unhealthy := 0
	byPhase(c.view.Remediations.Phases(), remediationPhases(), func(phase string, n int) {
		gauge("remediations", float64(n), phase)
		unhealthy += n
	})
	gauge("machines_unhealthy", float64(unhealthy))
	byPhase(c.view.Remediations.EtcdProblems(), etcdProblems(), func(problem string, n int) { gauge("etcd_problems", float64(n), problem) })
	gauge("effects_in_flight", float64(runs.InFlight))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for kind, t := range c.stored.count(ctx) {
		gauge("resources_unreadable", float64(t.unreadable), kind)
		gauge("resources_stalled", float64(t.stalled), kind)
		if t.stalled > 0 {
			gauge("resources_stalled_timestamp_seconds", seconds(t.since), kind)
		}
		for _, b := range t.backups {
			gauge("backup_last_success_timestamp_seconds", seconds(b.at), b.namespace, b.name)
		}
	}
	stats, err := c.log.Stats(ctx)
	if err != nil {
		return // /readyz reports the error
	}
	gauge("log_commits", float64(stats.Commits))
	gauge("log_bytes", float64(stats.Bytes))
	gauge("log_max_bytes", float64(stats.MaxBytes))
	accepts := 0.0
	if stats.AcceptsNew() {
		accepts = 1
	}
	gauge("log_accepts_new", accepts)
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// Metrics report each of these phases even if no object is in it, because an absent series is not
// zero.

func movePhases() []v1alpha1.MovePhase {
	return []v1alpha1.MovePhase{
		mover.PhasePending, mover.PhasePreflight, mover.PhasePausing, mover.PhaseAwaitingAcks, mover.PhasePlanned, mover.PhaseCreating, mover.PhaseVerified,
		mover.PhaseDeleting, mover.PhaseResuming, mover.PhaseSucceeded, mover.PhaseRollingBack, mover.PhaseRolledBack, mover.PhaseFailed, mover.PhaseStranded,
	}
}

func runPhases() []v1alpha1.RunPhase {
	return []v1alpha1.RunPhase{
		v1alpha1.RunPending, v1alpha1.RunRunning, v1alpha1.RunPartiallyPaused, v1alpha1.RunPaused, v1alpha1.RunSucceeded, v1alpha1.RunDegraded,
		v1alpha1.RunAborted, v1alpha1.RunRollingBack, v1alpha1.RunRolledBack, v1alpha1.RunRollbackFailed, v1alpha1.RunFailed, v1alpha1.RunStranded,
	}
}

// remediationPhases returns the phases of unfinished remediations. Finished remediations are not
// counted.
func remediationPhases() []v1alpha1.RemediationPhase {
	return []v1alpha1.RemediationPhase{
		v1alpha1.RemediationMarked, v1alpha1.RemediationWaiting, v1alpha1.RemediationHeld, v1alpha1.RemediationFrozen, v1alpha1.RemediationEscalating,
		v1alpha1.RemediationSurging, v1alpha1.RemediationReplacing, v1alpha1.RemediationRemoving, v1alpha1.RemediationCancelling, v1alpha1.RemediationFailed,
	}
}

func etcdProblems() []v1alpha1.EtcdProblemKind {
	return []v1alpha1.EtcdProblemKind{v1alpha1.EtcdCorrupt, v1alpha1.EtcdNoSpace, v1alpha1.EtcdNearQuota, v1alpha1.EtcdFragmented}
}

// byPhase calls fn for each phase in phases, and then for all other phases in counts.
func byPhase[P ~string](counts map[P]int, phases []P, fn func(phase string, n int)) {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(counts)), func(p P) bool { return slices.Contains(phases, p) })
	for _, phase := range slices.Concat(phases, others) {
		fn(string(phase), counts[phase])
	}
}
