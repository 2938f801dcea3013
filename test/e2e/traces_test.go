package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/export/tracing"
	"scute.dev/test/collector"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
)

// sent has the fields of a span that are compared.
type sent struct {
	Trace, Parent, Name string
	Start, End          int64
	Failed              bool
}

// arrived returns the spans of a trace that a collector has received, by ID, or all spans if trace is "". It checks
// that a span that arrived twice is the same both times.
func arrived(t *testing.T, c *collector.Collector, trace string) map[string]sent {
	t.Helper()
	out := map[string]sent{}
	for _, s := range c.Spans() {
		if trace != "" && s.TraceID().String() != trace {
			continue
		}
		got := sent{
			Trace: s.TraceID().String(), Parent: s.ParentSpanID().String(), Name: s.Name(), Failed: s.Status().Code() == ptrace.StatusCodeError,
			Start: int64(s.StartTimestamp()), End: int64(s.EndTimestamp()), //nolint:gosec // times of today
		}
		if before, ok := out[s.SpanID().String()]; ok && before != got {
			t.Errorf("span %s arrived as %+v and as %+v", s.SpanID(), before, got)
		}
		out[s.SpanID().String()] = got
	}
	return out
}

// logged returns the ID of the log in a folder, the sequence of the end of a trace's last span, the sequence of the
// last commit, and the spans of the trace.
func logged(ctx context.Context, t *testing.T, dir, trace string) (log string, end, head uint64, spans map[string]sent) {
	t.Helper()
	l, err := embedded.Open(ctx, embedded.Options{Dir: dir})
	harness.Must(t, err)
	defer l.Close()
	fold, spans := tracing.New(l.ID()), map[string]sent{}
	head, err = l.Replay(ctx, 0, func(r eventlog.Record) error {
		ended, err := fold.Apply(r)
		for i := range ended {
			s := &ended[i]
			if s.TraceID.String() != trace {
				continue
			}
			end = r.Seq
			out := sent{Trace: s.TraceID.String(), Name: s.Name, Start: s.Start.UnixNano(), End: s.End.UnixNano(), Failed: s.Failed}
			if s.Parent.IsValid() {
				out.Parent = s.Parent.String()
			}
			spans[s.SpanID.String()] = out
		}
		return err
	})
	harness.Must(t, err)
	return l.ID(), end, head, spans
}

// TestTraces checks that exactly the spans of the log arrive, with its IDs, when a run fails and is retried, its daemon
// is killed, and the collector is down for some time.
func TestTraces(t *testing.T) {
	ctx := harness.Deadline(t, 3*time.Minute)
	const ns, install = "traces", scuted.Namespace
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	c := &collector.Collector{Address: ports.AddressForTest(t)}
	harness.Must(t, c.Start(ctx))
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+c.Address)
	position := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: install, Name: "scute-tracing"}}
	t.Cleanup(func() { _ = shared.blue.Side.Client().Delete(context.WithoutCancel(ctx), position) })
	life := func() *scuted.Daemon {
		return harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir, Args: []string{"--enable-exec", "--tracing-position", install + "/scute-tracing"}})
	}
	d := life()
	ready := filepath.Join(t.TempDir(), "ready")
	admin, err := shared.blue.Client()
	harness.Must(t, err)
	harness.Must(t, shared.blue.Side.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	w, err := scuted.NewWorkflowRun(ns, "flaky", "default", fmt.Sprintf("tasks:\n- {name: first, kind: Exec, with: {command: ['true']}}\n"+
		"- {name: flaky, kind: Exec, needs: [first], with: {command: [test, -e, %q]}, retry: {max: 1000, delay: 500ms, maxDelay: 500ms}}\n", ready))
	harness.Must(t, err)
	harness.Must(t, admin.Create(ctx, w))
	var trace string // the run's trace: the daemon may have traces of earlier tests
	harness.Await(ctx, t, "an attempt that failed arrives", func() string {
		for _, s := range c.Spans() {
			if task, ok := s.Attributes().Get(string(tracing.AttributeTask)); ok && task.Str() == "flaky" && s.Status().Code() == ptrace.StatusCodeError {
				trace = s.TraceID().String()
				return ""
			}
		}
		return fmt.Sprint(arrived(t, c, ""))
	})
	harness.Must(t, c.Stop(ctx))
	harness.Must(t, d.Kill(ctx))
	d = life()
	before := scuted.TaskOf(untilRun(ctx, t, shared.blue, ns, "flaky", func(*v1alpha1.WorkflowRun) bool { return true }), "flaky")
	untilRun(ctx, t, shared.blue, ns, "flaky", func(w *v1alpha1.WorkflowRun) bool {
		now := scuted.TaskOf(w, "flaky")
		return now.Attempts > before.Attempts+2
	})
	harness.Must(t, os.WriteFile(ready, nil, 0o600))
	untilRun(ctx, t, shared.blue, ns, "flaky", func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == v1alpha1.RunSucceeded })
	harness.Must(t, c.Start(ctx))
	harness.Await(ctx, t, "the whole run arrives", func() string {
		for _, s := range arrived(t, c, trace) {
			if s.Name == "run" {
				return ""
			}
		}
		return fmt.Sprint(arrived(t, c, trace))
	})
	harness.Must(t, d.Stop(ctx))
	harness.Must(t, c.Stop(ctx))

	log, end, head, want := logged(ctx, t, dir, trace)
	got := arrived(t, c, trace)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-of the log +arrived):\n%s", diff)
	}
	harness.Must(t, shared.blue.Side.Client().Get(ctx, client.ObjectKeyFromObject(position), position))
	at, err := strconv.ParseUint(position.Data["sequence"], 10, 64)
	if err != nil || position.Data["logID"] != log || at < end || at > head {
		t.Errorf("position = %v, want one in log %s, between the end of the run at %d and of the log at %d", position.Data, log, end, head)
	}
	failed := 0
	for _, s := range got {
		if s.Failed {
			failed++
		}
	}
	if failed < 3 {
		t.Errorf("%d spans of failures, want at least 3", failed)
	}
	t.Logf("%d spans of trace %s, %d spans arrived in all, %d failures", len(want), trace, len(c.Spans()), failed)
}
