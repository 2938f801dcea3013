package eventlog_test

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// TestPurge checks that after a permitted user purged the stream, an open log and newly opened ones report ErrGap, and
// no history begins again.
func TestPurge(t *testing.T) {
	for name, options := range map[string][]jetstream.StreamPurgeOpt{
		"all": nil, "an aggregate": {jetstream.WithPurgeSubject(moveOf("a").Subject())}, "all but the last": {jetstream.WithPurgeKeep(1)},
		"the first": {jetstream.WithPurgeSequence(2)},
	} {
		t.Run(name, func(t *testing.T) {
			o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
			log := connectTest(t, o)
			mustAppend(t, log, commit(moveOf("a"), "1", 0, 1))
			mustAppend(t, log, commit(moveOf("b"), "1", 0, 1))
			mustAppend(t, log, commit(moveOf("b"), "2", 2, 1))
			nc, err := nats.Connect(o.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			js, err := jetstream.New(nc)
			if err != nil {
				t.Fatal(err)
			}
			stream, err := js.Stream(t.Context(), eventlog.StreamName)
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Purge(t.Context(), options...); err != nil {
				t.Fatal(err)
			}
			_, head := log.Head(t.Context())
			_, again := log.Append(t.Context(), commit(moveOf("a"), "2", 0, 1))
			_, read := log.Read(t.Context(), moveOf("a"), 0)
			_, replay := log.Replay(t.Context(), 0, func(eventlog.Record) error { return nil })
			_, reader := eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: o.URL})
			_, writer := eventlog.Connect(t.Context(), o)
			for _, err := range []error{head, log.Health(t.Context()), again, read, replay, reader, writer} {
				wantErr(t, err, eventlog.ErrGap)
			}
		})
	}
}
