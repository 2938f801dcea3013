package eventlog_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/drop"
	"scute.dev/eventlog/logtest"
)

// TestManyReadersFindAFloor: whatever a process does at once with a log that it had open before epochs were dropped finds what is kept of them, and
// nothing takes the log for lost.
func TestManyReadersFindAFloor(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
	writer := connectTest(t, o)
	archive := droppable(t, writer)
	writer.SettleAfter(0)
	reader := connectTest(t, eventlog.ExternalOptions{URL: o.URL})
	for through := 1; through <= 3; through++ {
		if err := dropThrough(t.Context(), writer, archive, through); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 10 {
			for name, do := range map[string]func() error{
				"Read": func() error {
					_, err := reader.Read(t.Context(), moveOf("long"), 0)
					return err
				},
				"Health": func() error { return reader.Health(t.Context()) },
				"Replay": func() error {
					_, err := reader.Replay(t.Context(), 0, func(eventlog.Record) error { return nil })
					return err
				},
				"Epochs": func() error {
					_, err := reader.Epochs(t.Context())
					return err
				},
			} {
				all.Go(func() {
					if err := do(); err != nil {
						t.Errorf("%s after the drop through %d: %v", name, through, err)
					}
				})
			}
		}
		all.Wait()
	}
}

// TestDropInTheMiddleOfAnOpening: epochs are dropped after who opens the log has found its beginning; neither is the next epoch taken for lost, nor what is kept.
func TestDropInTheMiddleOfAnOpening(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
	writer := connectTest(t, o)
	archive := droppable(t, writer)
	writer.SettleAfter(0)
	if err := dropThrough(t.Context(), writer, archive, 1); err != nil {
		t.Fatal(err)
	}
	reader := connectTest(t, eventlog.ExternalOptions{URL: o.URL})
	open := reader.Opening()
	for through := 2; through <= 3; through++ {
		kept, err := reader.Listing(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := dropThrough(t.Context(), writer, archive, through); err != nil {
			t.Fatal(err)
		}
		if found, ok, err := kept(t.Context()); err != nil || !ok || found != through {
			t.Errorf("what is kept by a listing of before: through %d, %t, %v", found, ok, err)
		}
		if err := open(t.Context()); err != nil {
			t.Fatal(err)
		}
		hasDropped(t, reader, through)
	}
}

// TestAnOlderPlanIsNotDecidedLast: a drop of fewer epochs, which slept after it had looked what was dropped before, is not decided after one of more, in
// whose place it would be carried out.
func TestAnOlderPlanIsNotDecidedLast(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
	more, fewer := connectTest(t, o), connectTest(t, o)
	archive := droppable(t, more)
	p, err := drop.Prepare(t.Context(), fewer, archive, 2, newLongLives, nil)
	if err != nil {
		t.Fatal(err)
	}
	var later error
	more.OnClosing(func(step string) {
		if step == "decided" {
			later = p.Carry(t.Context(), "user/test", "a test", decided, drop.Waits{})
		}
	})
	slept := false
	fewer.OnClosing(func(step string) {
		if step == "droppable" && !slept {
			slept = true
			if err := dropThrough(t.Context(), more, archive, 3); err != nil {
				t.Error(err)
			}
		}
	})
	wantErr(t, p.Carry(t.Context(), "user/test", "a test", decided, drop.Waits{}), eventlog.ErrNothingToDrop, "up to 3 were dropped already")
	wantErr(t, later, eventlog.ErrNothingToDrop, "up to 3 were dropped already")
	more.SettleAfter(0)
	wantErr(t, more.Droppable(t.Context(), 3), eventlog.ErrNothingToDrop)
	if got := streams(t, more); !slices.Equal(got, []string{"SCUTE_4", "SCUTE_KEPT_3"}) {
		t.Errorf("the streams are %v", got)
	}
}
