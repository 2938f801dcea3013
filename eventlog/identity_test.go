package eventlog_test

import (
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// TestLogHasAnIdentity checks that a log's ID is created with the stream, never changes, and differs between logs.
func TestLogHasAnIdentity(t *testing.T) {
	dir := t.TempDir()
	first := openTest(t, embedded.Options{Dir: dir, Listen: "127.0.0.1:0"})
	id := first.ID()
	if len(id) != 2*eventlog.IdentityBytes {
		t.Errorf("ID = %q", id)
	}
	if reader := connectTest(t, eventlog.ExternalOptions{URL: first.URL()}); reader.ID() != id {
		t.Errorf("ID of a reader = %q, of the writer %q", reader.ID(), id)
	}
	if other := openTest(t, embedded.Options{}); other.ID() == id {
		t.Error("two logs have the same ID")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if again := openTest(t, embedded.Options{Dir: dir, MaxBytes: 2 << 20}); again.ID() != id {
		t.Errorf("ID after reopening with another size = %q, want %q", again.ID(), id)
	}
}

// TestOlderLogGetsAnIdentity checks that a reader derives the ID that the first writer stores.
func TestOlderLogGetsAnIdentity(t *testing.T) {
	host := openWithoutStream(t)
	config := eventlog.StreamConfig(eventlog.StreamName)
	config.Metadata = map[string]string{"team": "a"}
	if _, err := host.JetStream().CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	metadata := func() map[string]string {
		t.Helper()
		stream, err := host.JetStream().Stream(t.Context(), eventlog.StreamName)
		if err != nil {
			t.Fatal(err)
		}
		return stream.CachedInfo().Config.Metadata
	}
	reader := connectTest(t, eventlog.ExternalOptions{URL: host.URL()})
	if got := metadata()[eventlog.IdentityKey]; got != "" {
		t.Errorf("a reader stored the ID %q", got)
	}
	writer := connectTest(t, eventlog.ExternalOptions{URL: host.URL(), Create: true})
	if got := metadata(); got[eventlog.IdentityKey] != writer.ID() || got["team"] != "a" {
		t.Errorf("metadata = %v, want the writer's ID %q and the existing entry", got, writer.ID())
	}
	if reader.ID() != writer.ID() {
		t.Errorf("ID of the reader = %q, of the writer %q", reader.ID(), writer.ID())
	}
}
