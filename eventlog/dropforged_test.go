package eventlog_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// TestFloorThatNobodyDecided: what looks like the rest of dropped epochs is no log if no commit records the drop.
func TestFloorThatNobodyDecided(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
	l := connectTest(t, o)
	archive := droppable(t, l)
	ctx, cancel := context.WithCancel(t.Context())
	l.OnClosing(func(step string) {
		if step == "compared" {
			cancel()
		}
	})
	if err := dropThrough(ctx, l, archive, 2); err == nil {
		t.Fatal("it was decided")
	}
	js := l.JetStream()
	list := js.StreamNames(t.Context())
	for name := range list.Name() {
		switch {
		case strings.Contains(name, "_KEPT_"):
			s, err := js.Stream(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			config := s.CachedInfo().Config
			config.Metadata = maps.Clone(config.Metadata)
			delete(config.Metadata, "scute.dev/making")
			config.Sealed = true
			if _, err := js.UpdateStream(t.Context(), config); err != nil {
				t.Fatal(err)
			}
		case name == "SCUTE" || name == "SCUTE_2":
			if err := js.DeleteStream(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := eventlog.Connect(t.Context(), o)
	wantErr(t, err, eventlog.ErrMissing, "no commit records that")
}
