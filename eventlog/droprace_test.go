package eventlog_test

import (
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
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
