package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/export/consume"
	"scute.dev/export/tracing"
	"scute.dev/workflow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver receives spans, or fails.
type receiver struct {
	mu       sync.Mutex
	received []tracing.Span
	respond  func(spans []tracing.Span) (int, error)
	arrived  chan struct{}
}

func newReceiver() *receiver { return &receiver{arrived: make(chan struct{}, 1)} }

func (r *receiver) send(_ context.Context, spans []tracing.Span) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() {
		select {
		case r.arrived <- struct{}{}:
		default:
		}
	}()
	if r.respond != nil {
		if n, err := r.respond(spans); err != nil {
			return n, err
		}
	}
	r.received = append(r.received, spans...)
	return 0, nil
}

// names returns the names of the received spans in order.
func (r *receiver) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for i := range r.received {
		out = append(out, r.received[i].Name)
	}
	return out
}

func (r *receiver) setResponse(fails func([]tracing.Span) (int, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.respond = fails
}

// waitForSpans waits for a number of spans.
func (r *receiver) waitForSpans(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	for len(r.names()) < n {
		select {
		case <-ctx.Done():
			t.Fatalf("received %v, want %d", r.names(), n)
		case <-r.arrived:
		}
	}
}

// writer appends to a run.
type writer struct {
	t    *testing.T
	log  *eventlog.Log
	of   string
	last uint64
}

func (w *writer) add(facts ...workflow.Event) {
	w.t.Helper()
	c := eventlog.Commit{Aggregate: eventlog.Aggregate{Kind: eventlog.KindRun, ID: w.of}, ID: w.of + strconv.FormatUint(w.last, 10), Expected: w.last}
	for _, fact := range facts {
		ev, err := workflow.NewCatalog().Encode(fact)
		if err != nil {
			w.t.Fatal(err)
		}
		ev.Time, ev.Actor = time.Now(), "daemon/test"
		c.Events = append(c.Events, ev)
	}
	r, err := w.log.Append(w.t.Context(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.last = r.Seq
}

func (w *writer) begin() { w.add(workflow.Started{Hash: "h"}) }

func (w *writer) task(name string) {
	w.add(workflow.TaskStarted{Task: name, Attempt: 1})
	w.add(workflow.TaskSucceeded{Task: name})
}

func (w *writer) end() { w.add(workflow.Ended{Phase: v1alpha1.RunSucceeded}) }

func newDelivery(t *testing.T, log *eventlog.Log, r *receiver) *Delivery {
	t.Helper()
	return &Delivery{
		Log: log, Store: consume.File(filepath.Join(t.TempDir(), "position")), Send: r.send, InitialInterval: time.Millisecond, SaveInterval: time.Millisecond,
		Alarm: func(error) {}, OnRejected: func(int, error) {}, Logger: slog.New(slog.DiscardHandler),
	}
}

// startDelivery runs a delivery until stop is called, or until the end of the test.
func startDelivery(t *testing.T, d *Delivery) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

func withTimeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestContinuesWhereItWas checks that a delivery that is stopped and restarted sends each span once, including spans
// that were open when it stopped.
func TestContinuesWhereItWas(t *testing.T) {
	ctx := withTimeout(t, time.Minute)
	log, r := logtest.Open(t), newReceiver()
	d := newDelivery(t, log, r)
	stop := startDelivery(t, d)
	run := &writer{t: t, log: log, of: "fleet/a/1"}
	run.begin()
	run.task("one")
	r.waitForSpans(ctx, t, 2)
	stop()
	p, err := d.Store.Load(ctx)
	if err != nil || p.LogID != log.ID() || p.Since != 0 || p.Sequence < 3 {
		t.Errorf("position = %+v, error %v", p, err)
	}
	run.task("two")
	run.end()
	stop = startDelivery(t, d)
	r.waitForSpans(ctx, t, 5)
	stop()
	if got, want := r.names(), []string{"attempt 1", "task one", "attempt 1", "task two", "run"}; !slices.Equal(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
	root := r.received[4]
	for i := range r.received {
		if r.received[i].TraceID != root.TraceID || root.TraceID != tracing.TraceID(log.ID(), eventlog.Aggregate{Kind: eventlog.KindRun, ID: "fleet/a/1"}, "") {
			t.Errorf("%s is in trace %s, the run in %s", r.received[i].Name, r.received[i].TraceID, root.TraceID)
		}
	}
	if p, err = d.Store.Load(ctx); err != nil || p.Sequence != run.last || p.Since != run.last {
		t.Errorf("position = %+v, error %v; the log ends at %d", p, err, run.last)
	}
	stop = startDelivery(t, d) // nothing remains to send
	again := &writer{t: t, log: log, of: "fleet/b/1"}
	again.begin()
	again.end()
	r.waitForSpans(ctx, t, 6)
	stop()
	if got := r.names(); len(got) != 6 {
		t.Errorf("sent %v", got)
	}
}

// TestCollectorThatIsDown checks that an unavailable collector does not block writers of the log, raises one alarm, and
// receives all spans later.
func TestCollectorThatIsDown(t *testing.T) {
	ctx := withTimeout(t, time.Minute)
	log, r := logtest.Open(t), newReceiver()
	d := newDelivery(t, log, r)
	alarms := make(chan string, 100)
	d.Alarm = func(err error) { alarms <- err.Error() }
	r.setResponse(func([]tracing.Span) (int, error) { return 0, errors.New("Unavailable: nobody is there") })
	stop := startDelivery(t, d)
	run := &writer{t: t, log: log, of: "fleet/a/1"}
	run.begin()
	const tasks = 128
	for i := range tasks {
		run.task(strconv.Itoa(i))
	}
	run.end()
	if said := <-alarms; !strings.Contains(said, "nobody is there") {
		t.Error(said)
	}
	r.setResponse(nil)
	r.waitForSpans(ctx, t, 2*tasks+1)
	stop()
	if len(alarms) > 0 {
		t.Errorf("second alarm: %s", <-alarms)
	}
	if s := d.State(); s.Sequence != run.last || s.Sent != 2*tasks+1 || s.Rejected != 0 {
		t.Errorf("state = %+v", s)
	}
}

// TestRefusedSpansAreGivenUp checks that spans are dropped that the collector rejects, and that later ones are sent.
func TestRefusedSpansAreGivenUp(t *testing.T) {
	ctx := withTimeout(t, time.Minute)
	log, r := logtest.Open(t), newReceiver()
	d := newDelivery(t, log, r)
	given := make(chan string, 10)
	d.OnRejected = func(n int, err error) { given <- fmt.Sprint(n, " ", err) }
	r.setResponse(func(spans []tracing.Span) (int, error) { return len(spans), fmt.Errorf("%w: too odd", errRejected) })
	stop := startDelivery(t, d)
	run := &writer{t: t, log: log, of: "fleet/a/1"}
	run.begin()
	run.task("odd")
	if said := <-given; said != "2 the collector refuses spans: too odd" {
		t.Error(said)
	}
	r.setResponse(nil)
	run.end()
	r.waitForSpans(ctx, t, 1)
	stop()
	if s := d.State(); s.Sent != 1 || s.Rejected != 2 {
		t.Errorf("state = %+v", s)
	}
}

// TestLogThatWentBack checks that if the log has other commits than those that were sent, its spans are sent from the
// beginning.
func TestLogThatWentBack(t *testing.T) {
	ctx := withTimeout(t, time.Minute)
	log, r := logtest.Open(t), newReceiver()
	d := newDelivery(t, log, r)
	alarms := make(chan string, 10)
	d.Alarm = func(err error) { alarms <- err.Error() }
	run := &writer{t: t, log: log, of: "fleet/a/1"}
	run.begin()
	run.task("one")
	run.end()
	if err := d.Store.Save(ctx, consume.Position{LogID: log.ID(), Sequence: 3, Commit: "3/of-a-time-that-is-gone", Since: 3}); err != nil {
		t.Fatal(err)
	}
	stop := startDelivery(t, d)
	r.waitForSpans(ctx, t, 3)
	stop()
	if said := <-alarms; !strings.Contains(said, consume.ErrRolledBack.Error()) {
		t.Error(said)
	}
	if got := r.names(); !slices.Equal(got, []string{"attempt 1", "task one", "run"}) {
		t.Errorf("sent %v", got)
	}
}

// TestBatches checks that spans are sent in batches when many are pending.
func TestBatches(t *testing.T) {
	ctx := withTimeout(t, time.Minute)
	log, r := logtest.Open(t), newReceiver()
	run := &writer{t: t, log: log, of: "fleet/a/1"}
	run.begin()
	var facts []workflow.Event
	for i := range 800 {
		facts = append(facts, workflow.TaskStarted{Task: strconv.Itoa(i), Attempt: 1})
	}
	run.add(facts...)
	run.end()
	largest := 0
	r.setResponse(func(spans []tracing.Span) (int, error) { largest = max(largest, len(spans)); return 0, nil })
	stop := startDelivery(t, newDelivery(t, log, r))
	r.waitForSpans(ctx, t, 1601)
	stop()
	if largest != maxBatchSpans || len(r.names()) != 1601 {
		t.Errorf("%d spans, at most %d at once", len(r.names()), largest)
	}
}
