package eventlog_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
)

// TestTwoClosings: two processes that begin to close an epoch at once, each with its own ID, close it once, and the next one is
// opened once.
func TestTwoClosings(t *testing.T) {
	for _, step := range []string{"said", "sealed", "created", "opened"} {
		t.Run(step, func(t *testing.T) {
			srv := logtest.Serve(t, &server.Options{})
			o := eventlog.ExternalOptions{URL: srv.ClientURL(), Create: true}
			first, second := connectTest(t, o), connectTest(t, o)
			mustAppend(t, first, commit(moveOf("a"), "1", 0, 1))
			first.OnClosing(func(at string) {
				if at != step {
					return
				}
				// The second one has written what it is about to do after the first one.
				stream, err := first.JetStream().Stream(t.Context(), "SCUTE")
				if err != nil {
					t.Fatal(err)
				}
				config := stream.CachedInfo().Config
				config.Metadata["scute.dev/closing"] = strings.Replace(config.Metadata["scute.dev/closing"], `"id":"`, `"id":"f`, 1)
				if _, err := first.JetStream().UpdateStream(t.Context(), config); err != nil {
					t.Fatal(err)
				}
				if err := second.Health(t.Context()); err != nil {
					t.Error(err)
				}
			})
			closeEpoch(t, first)
			mustAppend(t, second, commit(moveOf("a"), "2", 1, 1))
			if got := replayed(t, first, 0); len(got) != 4 || !strings.HasPrefix(got[1], "2 daemon/epochs close/") || !strings.HasPrefix(got[2], "3 daemon/epochs open/") {
				t.Errorf("%q", got)
			}
			listed, err := first.Epochs(t.Context())
			if err != nil || len(listed) != 2 {
				t.Fatalf("%+v, %v", listed, err)
			}
			boundaries(t, first, listed)
		})
	}
}

// TestCommitOfOneEpoch: what says that an epoch is closed is not stored in the next one.
func TestCommitOfOneEpoch(t *testing.T) {
	l := openTest(t, embedded.Options{})
	mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
	closeEpoch(t, l)
	_, err := l.Append(t.Context(), commit(moveOf("b"), "1", 0, 1).In(1))
	wantErr(t, err, eventlog.ErrConflict, "epoch 1 was closed")
	if r, err := l.Append(t.Context(), commit(moveOf("a"), "1", 0, 1).In(1)); err != nil || !r.AlreadyStored {
		t.Errorf("%+v, %v", r, err)
	}
	mustAppend(t, l, commit(moveOf("b"), "1", 0, 1).In(2))
}
