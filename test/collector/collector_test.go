package collector_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/export/consume"
	"scute.dev/export/otlp"
	"scute.dev/export/tracing"
	"scute.dev/internal/pinned"
	"scute.dev/test/collector"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
)

// sent has the fields of a span that are compared.
type sent struct {
	Trace, Parent, Name string
	Start, End          int64
	Failed              bool
}

// histories appends the histories of real runs, moves and remediations, many of them with kills, to a log.
func histories(t *testing.T, log *eventlog.Log) (head uint64) {
	t.Helper()
	for kind, folder := range map[eventlog.Kind]string{eventlog.KindMove: "mover", eventlog.KindRun: "workflow", eventlog.KindRemediation: "remediator"} {
		files, err := filepath.Glob(filepath.Join("..", "..", folder, "testdata", "histories", "*.jsonl"))
		harness.Must(t, err)
		for _, file := range files {
			events, err := pinned.Load(file)
			harness.Must(t, err)
			name, last := filepath.Base(file), uint64(0)
			for n := 0; len(events) > 0; n++ {
				size := min(20, len(events))
				r, err := log.Append(t.Context(), eventlog.Commit{
					Aggregate: eventlog.Aggregate{Kind: kind, ID: "fleet/" + name}, ID: fmt.Sprint(name, n), Expected: last, Events: events[:size],
				})
				harness.Must(t, err)
				events, last, head = events[size:], r.Seq, r.Seq
			}
		}
	}
	return head
}

// TestHistories sends the spans of real histories to the receiver of the OpenTelemetry Collector, with deliveries that
// stop and restart, and a receiver that is down for some time. Exactly the spans of the log arrive, with its IDs.
func TestHistories(t *testing.T) {
	ctx := harness.Deadline(t, 2*time.Minute)
	log := logtest.Open(t)
	head := histories(t, log)
	c := &collector.Collector{Address: ports.AddressForTest(t)}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+c.Address)
	sender, err := otlp.NewSender(ctx, "a-cluster")
	harness.Must(t, err)
	t.Cleanup(func() { harness.Must(t, sender.Close(context.WithoutCancel(ctx))) })
	away := make(chan struct{}, 1)
	position := consume.File(filepath.Join(t.TempDir(), "position"))
	deliver := func() (d *otlp.Delivery, stop func()) {
		d = &otlp.Delivery{
			Log: log, Store: position, InitialInterval: time.Millisecond, SaveInterval: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
			Send: sender.Send,
			Alarm: func(error) {
				select {
				case away <- struct{}{}:
				default:
				}
			},
			OnRejected: func(n int, err error) { t.Errorf("%d spans were refused: %v", n, err) },
		}
		running, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() { defer close(done); d.Run(running) }()
		stop = sync.OnceFunc(func() { cancel(); <-done })
		t.Cleanup(stop)
		return d, stop
	}
	_, stop := deliver()
	<-away // the receiver does not run yet
	stop()
	harness.Must(t, c.Start(ctx))
	_, stop = deliver()
	harness.Await(ctx, t, "the first spans arrive", func() string { return fewer(c, 1) })
	stop()
	harness.Must(t, c.Stop(ctx))
	harness.Must(t, c.Start(ctx))
	d, stop := deliver()
	harness.Await(ctx, t, "all are sent", func() string {
		if s := d.State(); s.Sequence != head {
			return fmt.Sprintf("%+v of %d", s, head)
		}
		return ""
	})
	stop()
	harness.Must(t, c.Stop(ctx))

	got, want := map[string]sent{}, map[string]sent{}
	for _, s := range c.Spans() {
		got[s.SpanID().String()] = sent{
			Trace: s.TraceID().String(), Parent: s.ParentSpanID().String(), Name: s.Name(), Failed: s.Status().Code() == ptrace.StatusCodeError,
			Start: int64(s.StartTimestamp()), End: int64(s.EndTimestamp()), //nolint:gosec // times of today
		}
	}
	fold := tracing.New(log.ID())
	_, err = log.Replay(ctx, 0, func(r eventlog.Record) error {
		ended, err := fold.Apply(r)
		for i := range ended {
			s := &ended[i]
			out := sent{Trace: s.TraceID.String(), Name: s.Name, Start: s.Start.UnixNano(), End: s.End.UnixNano(), Failed: s.Failed}
			if s.Parent.IsValid() {
				out.Parent = s.Parent.String()
			}
			want[s.SpanID.String()] = out
		}
		return err
	})
	harness.Must(t, err)
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 100 {
		t.Errorf("%d spans, want at least 100 (-of the log +arrived):\n%s", len(want), diff)
	}
	t.Logf("%d spans of %d commits, %d spans arrived in all", len(want), head, len(c.Spans()))
}

func fewer(c *collector.Collector, n int) string {
	if got := len(c.Spans()); got < n {
		return fmt.Sprintf("%d spans", got)
	}
	return ""
}
