package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/logtest"
)

// TestEpochs: the epochs of a log are backed up as one log, and restored as one epoch that has all commits and continues.
func TestEpochs(t *testing.T) {
	dir, folder, to := logOf(t, 30), t.TempDir(), t.TempDir()
	backedUp(t, dir, folder)
	long, had := eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a1"}, 0
	for n := range 2 {
		with(t, dir, func(l *eventlog.Log) {
			if err := l.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test"}); err != nil {
				t.Fatal(err)
			}
			records, err := l.Read(t.Context(), long, 0)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				had = len(records)
			}
			c := eventlog.Commit{
				Aggregate: long, ID: fmt.Sprint("later ", n), Expected: records[len(records)-1].Seq,
				Events: []eventlog.Event{{Type: "dev.scute.move.tested.v1", Data: []byte(`{}`)}},
			}
			if _, err := l.Append(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		})
		appendTo(t, dir, 5)
		backedUp(t, dir, folder)
	}
	m := backedUp(t, dir, folder)
	if m.Last != 30+2*(2+1+5) {
		t.Errorf("the backup ends at %d", m.Last)
	}
	restored(t, folder, to)
	if got := root(t, to); got != m.Checkpoint() {
		t.Errorf("restored %+v, want %+v", got, m.Checkpoint())
	}
	appendTo(t, to, 3)
	with(t, to, func(l *eventlog.Log) {
		records, err := l.Read(t.Context(), long, 0)
		if err != nil || len(records) != had+2 {
			t.Errorf("%d commits, %v", len(records), err)
		}
		if err := l.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test"}); err != nil {
			t.Error(err)
		}
		if epochs, err := l.Epochs(t.Context()); err != nil || len(epochs) != 2 || !epochs[0].Closed {
			t.Errorf("%+v, %v", epochs, err)
		}
	})
}

// TestARequestIsNotAnsweredAgain: a restored log has one epoch, and the requests that closed those of the backup. None of them closes
// an epoch of the restored log, whose numbers are the same, and nobody who asks is told that another did.
func TestARequestIsNotAnsweredAgain(t *testing.T) {
	dir, folder, to := logOf(t, 5), t.TempDir(), t.TempDir()
	answered := func(l *eventlog.Log) bool {
		t.Helper()
		r, ok, err := l.OpenCloseRequest(t.Context())
		if err == nil && ok {
			err = l.CloseEpoch(t.Context(), eventlog.Closing{Actor: r.Actor, Reason: r.Reason, Epoch: r.Epoch})
		}
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	for n := range 2 {
		with(t, dir, func(l *eventlog.Log) {
			if _, err := l.RequestClose(t.Context(), eventlog.Closing{Actor: "user/jane", Reason: "last year"}); err != nil {
				t.Fatal(err)
			}
			if !answered(l) {
				t.Fatal("the request is not there")
			}
		})
		appendTo(t, dir, 2)
		backedUp(t, dir, folder)
		if n == 0 {
			restored(t, folder, to) // with a request for its first epoch
		}
	}
	later := t.TempDir()
	restored(t, folder, later) // with one for its second
	for name, where := range map[string]string{"first": to, "second": later} {
		with(t, where, func(l *eventlog.Log) {
			if answered(l) {
				t.Errorf("%s: the request of last year closed an epoch", name)
			}
			if name == "second" {
				if err := l.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test"}); err != nil {
					t.Fatal(err)
				}
				if answered(l) {
					t.Errorf("%s: the request of last year closed an epoch", name)
				}
				c := eventlog.Commit{
					Aggregate: eventlog.Aggregate{Kind: eventlog.KindRun, ID: "fleet/later"}, ID: "1",
					Events: []eventlog.Event{{Type: "dev.scute.run.tested.v1", Data: []byte(`{}`)}},
				}
				if _, err := l.Append(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			asked, err := l.RequestClose(t.Context(), eventlog.Closing{Actor: "user/joe", Reason: "this year"})
			if err != nil || asked.Actor != "user/joe" {
				t.Errorf("%s: %+v, %v", name, asked, err)
			}
			if !answered(l) || answered(l) {
				t.Errorf("%s: one request closes one epoch", name)
			}
		})
	}
}

// TestRestoreBesideALaterEpoch: a log is not restored where a later epoch of another one is still there, in which a process that had that
// log open would continue.
func TestRestoreBesideALaterEpoch(t *testing.T) {
	folder := t.TempDir()
	m := backedUp(t, logOf(t, 5), folder)
	srv := logtest.Serve(t, &server.Options{})
	nc, err := nats.Connect(srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	o := eventlog.ExternalOptions{URL: srv.ClientURL(), Create: true}
	if err := eventlog.RestoreExternal(t.Context(), o, backup.Restored(folder, m, nil, nil)); err != nil {
		t.Fatal(err)
	}
	l, err := eventlog.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	err = l.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test"})
	if err := errors.Join(err, l.Close(), js.DeleteStream(t.Context(), "SCUTE")); err != nil {
		t.Fatal(err)
	}
	err = eventlog.RestoreExternal(t.Context(), o, backup.Restored(folder, m, nil, nil))
	if !errors.Is(err, eventlog.ErrExists) || !strings.Contains(err.Error(), "SCUTE_2") {
		t.Errorf("restored beside a later epoch: %v", err)
	}
	if err := js.DeleteStream(t.Context(), "SCUTE_2"); err != nil {
		t.Fatal(err)
	}
	if err := eventlog.RestoreExternal(t.Context(), o, backup.Restored(folder, m, nil, nil)); err != nil {
		t.Error(err)
	}
}

// TestRestoreAfterADeletion: a server that cannot make the stream, because it removes the folders of the last one that was deleted, is asked again.
func TestRestoreAfterADeletion(t *testing.T) {
	folder := t.TempDir()
	m := backedUp(t, logOf(t, 5), folder)
	srv := logtest.Serve(t, &server.Options{})
	account := filepath.Join(srv.JetStreamConfig().StoreDir, server.DEFAULT_GLOBAL_ACCOUNT)
	r := backup.Restored(folder, m, nil, nil)
	asked, send := 0, r.Archive
	r.Archive = func(ctx context.Context, w io.Writer) error {
		if asked++; asked == 1 { // a file, where the server makes its folder
			if err := errors.Join(os.RemoveAll(account), os.WriteFile(account, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		} else if err := os.RemoveAll(account); err != nil {
			t.Fatal(err)
		}
		return send(ctx, w)
	}
	if err := eventlog.RestoreExternal(t.Context(), eventlog.ExternalOptions{URL: srv.ClientURL()}, r); err != nil || asked != 2 {
		t.Errorf("restored after %d attempts: %v", asked, err)
	}
}
