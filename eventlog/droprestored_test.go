package eventlog_test

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/logtest"
)

// TestRestoredWhileADropSlept: a drop that slept in the middle of its deletions, while the log was restored from its archive, deletes nothing of that.
func TestRestoredWhileADropSlept(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
	dropper, other := connectTest(t, o), connectTest(t, o)
	archive := droppable(t, dropper)
	m, err := backup.Read(archive)
	if err != nil {
		t.Fatal(err)
	}
	dropper.SettleAfter(0)
	var seq uint64
	dropper.OnClosing(func(step string) {
		if step != "deleted" || seq > 0 {
			return
		}
		for _, name := range []string{"SCUTE_2", "SCUTE_3", "SCUTE_4", dropper.Floor().Stream} {
			deleteStream(t, other.JetStream(), name)
		}
		if err := eventlog.RestoreExternal(t.Context(), o, backup.Restored(archive, m, nil, nil)); err != nil {
			t.Fatal(err)
		}
		l := connectTest(t, o)
		closeEpoch(t, l)
		mustAppend(t, l, commit(moveOf("new"), "1", 0, 1))
		closeEpoch(t, l)
		seq = mustAppend(t, l, commit(moveOf("after"), "1", 0, 1))
	})
	wantErr(t, dropThrough(t.Context(), dropper, archive, 3), eventlog.ErrMissing)
	l := connectTest(t, o)
	if got := replayed(t, l, 0); uint64(len(got)) != seq {
		t.Errorf("%d commits, want %d, in %v", len(got), seq, streams(t, l))
	}
}

// TestRestoreBesideTheRestOfALog: a log is not restored beside streams of the one that is lost, in which processes that had it open continue.
func TestRestoreBesideTheRestOfALog(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
	l := connectTest(t, o)
	archive := droppable(t, l)
	m, err := backup.Read(archive)
	if err != nil {
		t.Fatal(err)
	}
	l.SettleAfter(0)
	if err := dropThrough(t.Context(), l, archive, 3); err != nil {
		t.Fatal(err)
	}
	kept := l.Floor().Stream
	wantErr(t, eventlog.RestoreExternal(t.Context(), o, backup.Restored(archive, m, nil, nil)), eventlog.ErrExists, "SCUTE_4, "+kept)
	deleteStream(t, l.JetStream(), kept)
	wantErr(t, eventlog.RestoreExternal(t.Context(), o, backup.Restored(archive, m, nil, nil)), eventlog.ErrExists, "SCUTE_4")
	deleteStream(t, l.JetStream(), "SCUTE_4")
	if err := eventlog.RestoreExternal(t.Context(), o, backup.Restored(archive, m, nil, nil)); err != nil {
		t.Error(err)
	}
}
