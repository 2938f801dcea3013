package eventlog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
)

// TestClosedEpochIsGone: a closed epoch that was removed while the log is open is noticed as the open one is.
func TestClosedEpochIsGone(t *testing.T) {
	t.Run("external", func(t *testing.T) {
		srv := logtest.Serve(t, &server.Options{})
		l := connectTest(t, eventlog.ExternalOptions{URL: srv.ClientURL(), Create: true})
		mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
		closeEpoch(t, l)
		if err := l.JetStream().DeleteStream(t.Context(), "SCUTE"); err != nil {
			t.Fatal(err)
		}
		wantErr(t, l.Health(t.Context()), eventlog.ErrMissing, "stream SCUTE;")
		_, err := l.Read(t.Context(), moveOf("b"), 0)
		wantErr(t, err, eventlog.ErrMissing, "stream SCUTE;")
	})
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("embedded, opened again %t", again), func(t *testing.T) {
			dir := t.TempDir()
			l := openTest(t, embedded.Options{Dir: dir})
			mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
			closeEpoch(t, l)
			if again {
				l = openTest(t, embedded.Options{Dir: copied(t, dir, l)})
			}
			if err := os.RemoveAll(filepath.Join(dir, "jetstream", "$G", "streams", "SCUTE")); err != nil {
				t.Fatal(err)
			}
			_, err := l.Append(t.Context(), commit(moveOf("b"), "1", 0, 1))
			wantErr(t, err, eventlog.ErrMissing)
			wantErr(t, l.Health(t.Context()), eventlog.ErrMissing)
		})
	}
}
