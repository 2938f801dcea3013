package doctor

import (
	"context"
	"errors"
	"io"

	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/logcmd"
	"scute.dev/eventlog"
	"scute.dev/internal/trust"
	"scute.dev/view"
)

// Shares of the log's size limit. A full log accepts no new events.
const (
	fullWarning = 0.80
	fullProblem = 0.95
)

func eventLog(ctx context.Context, v *diagnosis) {
	const subject = "event log"
	if !v.flags.LogOnly() {
		switch {
		case v.cluster == nil: // the log is found through the cluster
			return
		case v.podsHidden:
			v.report(warning(subject, "ask for permission to list pods, or name the log with --log or --nats", "not checked: it is in the daemon's pod"))
			return
		case v.noDaemon:
			v.report(warning(subject, "fix the daemon first, or name the log with --log or --nats", "not checked: it is in the daemon's pod"))
			return
		case v.daemonOutside:
			v.report(warning(subject, "name it with --nats, if the daemon listens", "not checked: the daemon does not run in a pod"))
			return
		}
	}
	log, err := v.flags.Log(ctx, io.Discard)
	if err != nil {
		v.report(explainLog(subject, v.flags, err))
		return
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	stats, err := log.Stats(ctx)
	if err != nil {
		v.report(explainLog(subject, v.flags, err))
		return
	}
	share := 0.0
	if stats.MaxBytes > 0 {
		share = float64(stats.Bytes) / float64(stats.MaxBytes)
	}
	r := ok(subject, "%s on %s, no gap, %.1f of %.0f MiB (%.0f %%), at %s",
		view.Count(stats.Commits, "commit"), view.Count(stats.Aggregates, "aggregate"), mib(stats.Bytes), mib(stats.MaxBytes), 100*share, log.Where)
	if share >= fullWarning {
		r.Level, r.Remedy = levelWarning, "raise its limit and, if need be, its volume: log.maxBytes and log.storage.size of the chart"
	}
	if share >= fullProblem {
		r.Level = levelProblem
	}
	v.report(r)
	checkTrust(ctx, v, log)
}

// checkTrust checks whether the daemon may act on its log. It does nothing for a log in a folder,
// which may belong to another cluster.
func checkTrust(ctx context.Context, v *diagnosis, log *connect.Log) {
	const subject = "event log"
	if v.cluster == nil || v.flags.Dir != "" {
		return
	}
	switch fault, err := logcmd.CheckTrust(ctx, v.cluster, log); {
	case errors.Is(err, eventlog.ErrUnknownType): // the daemon may know the type
		v.report(warning(subject, "use scutectl of the daemon's version, or a newer one", "whether the daemon may act on it could not be checked: %v", err))
	case err != nil:
		v.report(warning(subject, "ask for permission to read the Lease", "whether the daemon may act on it could not be checked: %v", err))
	case fault != nil:
		v.report(problem(subject, reconcileRemedy(v, fault), "%s", fault.Message))
	}
}

func reconcileRemedy(v *diagnosis, f *trust.Fault) string {
	if f.Reason == trust.Newer {
		return "run the version of scute that last acted on the log, or a newer one"
	}
	return "restore the log, or run " + v.kit.Hint("", "log", "reconcile")
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

func explainLog(subject string, f *connect.Flags, err error) result {
	switch {
	case errors.Is(err, eventlog.ErrGap):
		return problem(subject, "stop the daemon, keep the folder as it is, and restore the log from a backup or a mirror", "%v", err)
	case errors.Is(err, eventlog.ErrConfig):
		return problem(subject, "correct the stream's configuration where it differs", "%v", err)
	case errors.Is(err, eventlog.ErrLocked):
		return warning(subject, f.BusyHint(), "%v", err)
	default:
		return problem(subject, "check the log lines of the daemon, or name the log with --log or --nats", "%v", err)
	}
}
