package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/logtest"
)

// backupOf backs up a log of the given number of commits, and returns what restores the backup.
func backupOf(t *testing.T, commits int) (r func(check func(context.Context, *eventlog.Log) error) eventlog.RestoreSource) {
	t.Helper()
	folder := t.TempDir()
	from := connectTest(t, eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true})
	for n := range uint64(commits) { //nolint:gosec // a few
		mustAppend(t, from, commit(moveOf("old"), fmt.Sprint(n), n, 1))
	}
	m, err := backup.Write(t.Context(), from, folder, backup.Options{Now: decided})
	if err != nil {
		t.Fatal(err)
	}
	return func(check func(context.Context, *eventlog.Log) error) eventlog.RestoreSource {
		r := backup.Source(folder, m, nil, nil)
		if check != nil {
			r.Check = check
		}
		return r
	}
}

// TestRestoreLeavesALogInUse checks that a restore does not replace a log that received a commit after the restore
// found it empty, and that this log accepts further commits.
func TestRestoreLeavesALogInUse(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
	used := connectTest(t, o)
	a := moveOf("acknowledged")
	err := eventlog.RestoreHooked(t.Context(), o, backupOf(t, 1)(nil), func(what string) {
		if what == "update SCUTE" {
			if head, err := used.Head(t.Context()); err != nil || head > 0 {
				return // the log accepts appends again
			}
			mustAppend(t, used, commit(a, "1", 0, 1))
		}
	})
	wantErr(t, err, eventlog.ErrExists, "commits up to 1")
	mustAppend(t, used, commit(a, "2", 1, 1))
	if err := used.Health(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRestoreThatMayNotDelete checks that a restore without the permission to delete leaves a daemon's empty log
// usable.
func TestRestoreThatMayNotDelete(t *testing.T) {
	users := []*server.User{
		{Username: "all", Password: "x"},
		{Username: "restorer", Password: "x", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{">"}, Deny: []string{"$JS.API.STREAM.DELETE.>"}}}},
	}
	url := logtest.Serve(t, &server.Options{Users: users}).ClientURL()
	as := func(user string) eventlog.ExternalOptions {
		return eventlog.ExternalOptions{URL: strings.Replace(url, "nats://", "nats://"+user+":x@", 1), Create: true}
	}
	used := connectTest(t, as("all"))
	wantErr(t, eventlog.RestoreExternal(t.Context(), as("restorer"), backupOf(t, 1)(nil)), eventlog.ErrPermission, "DELETE")
	mustAppend(t, used, commit(moveOf("a"), "1", 0, 1))
}

// TestRestoreThatEndsInTheMiddle interrupts a restore after it closed a log that has received a commit. The restore
// opens the log again; if it was killed, the next restore does.
func TestRestoreThatEndsInTheMiddle(t *testing.T) {
	for _, killed := range []bool{false, true} {
		o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
		used := connectTest(t, o)
		ctx, cancel := context.WithCancel(t.Context())
		updates := 0
		r := backupOf(t, 1)
		var err error
		var restore sync.WaitGroup
		restore.Go(func() {
			err = errors.New("killed")
			err = eventlog.RestoreHooked(ctx, o, r(nil), func(what string) {
				switch {
				case what == "update SCUTE" && updates == 0:
					updates++
					mustAppend(t, used, commit(moveOf("a"), "1", 0, 1))
				case what == "update SCUTE" && killed:
					runtime.Goexit()
				case what == "stream SCUTE" && updates == 1:
					cancel()
				}
			})
		})
		restore.Wait()
		if err == nil {
			t.Error("a log with a commit was replaced")
		}
		wantErr(t, eventlog.RestoreExternal(t.Context(), o, r(nil)), eventlog.ErrExists, "commits up to 1")
		mustAppend(t, used, commit(moveOf("b"), "1", 0, 1))
	}
}

// TestRestoreShutsWhatItReplaces checks that a log acknowledges no commit between the check that it is empty and its
// replacement.
func TestRestoreShutsWhatItReplaces(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
	used := connectTest(t, o)
	err := eventlog.RestoreHooked(t.Context(), o, backupOf(t, 1)(nil), func(what string) {
		if what == "delete SCUTE" {
			_, err := used.JetStream().Publish(t.Context(), "scute.log.move.late", nil)
			if err == nil {
				t.Error("a log that is being deleted acknowledged a commit")
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestTwoRestores starts a second restore while the first one checks its copy. The first must not turn the second one's
// copy into a log.
func TestTwoRestores(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL()}
	shorter, refused := backupOf(t, 1), errors.New("it is not whole")
	r := backupOf(t, 2)(func(ctx context.Context, _ *eventlog.Log) error {
		other := eventlog.RestoreExternal(ctx, o, shorter(func(context.Context, *eventlog.Log) error { return refused }))
		if !errors.Is(other, refused) {
			t.Errorf("the other restore = %v", other)
		}
		return nil
	})
	wantErr(t, eventlog.RestoreExternal(t.Context(), o, r), eventlog.ErrExists, "another restore")
	_, err := eventlog.Connect(t.Context(), o)
	wantErr(t, err, eventlog.ErrConfig, "restore")
}

// TestRestoreThatIsReplacedAtItsEnd replaces a restored stream between its last check and the request that completes
// the restore. Nothing can prevent this request, but the restore must fail.
func TestRestoreThatIsReplacedAtItsEnd(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL()}
	shorter, refused := backupOf(t, 1), errors.New("it is not whole")
	err := eventlog.RestoreHooked(t.Context(), o, backupOf(t, 2)(nil), func(what string) {
		if what == "update SCUTE" {
			other := eventlog.RestoreExternal(t.Context(), o, shorter(func(context.Context, *eventlog.Log) error { return refused }))
			if !errors.Is(other, refused) {
				t.Errorf("the other restore = %v", other)
			}
		}
	})
	wantErr(t, err, eventlog.ErrExists, "delete that stream")
}

// TestRestoreThatADaemonReplaces lets a daemon replace the restored stream with its own log just before the restore
// completes. The error must not describe that log as unneeded.
func TestRestoreThatADaemonReplaces(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
	nc, err := nats.Connect(o.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	err = eventlog.RestoreHooked(t.Context(), o, backupOf(t, 2)(nil), func(what string) {
		if what == "update SCUTE" {
			if _, err := nc.Request("$JS.API.STREAM.DELETE.SCUTE", nil, time.Minute); err != nil {
				t.Error(err)
			}
			mustAppend(t, connectTest(t, o), commit(moveOf("a"), "1", 0, 1))
		}
	})
	wantErr(t, err, eventlog.ErrExists, "daemon", "commits up to 1", "if nobody needs")
}
