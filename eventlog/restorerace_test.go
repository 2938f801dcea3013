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

// backedUp is a backup of a log with so many commits.
func backedUp(t *testing.T, commits int) (r func(check func(context.Context, *eventlog.Log) error) eventlog.Restored) {
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
	return func(check func(context.Context, *eventlog.Log) error) eventlog.Restored {
		r := backup.Restored(folder, m, nil, nil)
		if check != nil {
			r.Check = check
		}
		return r
	}
}

// TestRestoreLeavesALogInUse: a log that was empty when the restore looked, and has a commit since, is not replaced, and takes others.
func TestRestoreLeavesALogInUse(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
	used := connectTest(t, o)
	a := moveOf("acknowledged")
	err := eventlog.RestoreHooked(t.Context(), o, backedUp(t, 1)(nil), func(what string) {
		if what == "update SCUTE" {
			if head, err := used.Head(t.Context()); err != nil || head > 0 {
				return // the log is opened again
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

// TestRestoreThatMayNotDelete leaves the empty log of a daemon as it was.
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
	wantErr(t, eventlog.RestoreExternal(t.Context(), as("restorer"), backedUp(t, 1)(nil)), eventlog.ErrPermission, "DELETE")
	mustAppend(t, used, commit(moveOf("a"), "1", 0, 1))
}

// TestRestoreThatEndsInTheMiddle, after it has shut a log that has a commit by then: it opens the log again. If it is killed, the next one does.
func TestRestoreThatEndsInTheMiddle(t *testing.T) {
	for _, killed := range []bool{false, true} {
		o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
		used := connectTest(t, o)
		ctx, cancel := context.WithCancel(t.Context())
		updates := 0
		r := backedUp(t, 1)
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

// TestRestoreShutsWhatItReplaces: from when it was seen to be empty, the log that is replaced acknowledges nothing.
func TestRestoreShutsWhatItReplaces(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
	used := connectTest(t, o)
	err := eventlog.RestoreHooked(t.Context(), o, backedUp(t, 1)(nil), func(what string) {
		if what == "delete SCUTE" {
			_, err := used.JetStream().Publish(t.Context(), "scute.log.move.late", nil)
			if err == nil {
				t.Error("a commit is acknowledged by a log that is being deleted")
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestTwoRestores: while one restore checks what it has made, another one begins. The first one does not make a log of what the other one has made.
func TestTwoRestores(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL()}
	shorter, refused := backedUp(t, 1), errors.New("it is not whole")
	r := backedUp(t, 2)(func(ctx context.Context, _ *eventlog.Log) error {
		other := eventlog.RestoreExternal(ctx, o, shorter(func(context.Context, *eventlog.Log) error { return refused }))
		if !errors.Is(other, refused) {
			t.Errorf("the other restore: %v", other)
		}
		return nil
	})
	wantErr(t, eventlog.RestoreExternal(t.Context(), o, r), eventlog.ErrExists, "another restore")
	_, err := eventlog.Connect(t.Context(), o)
	wantErr(t, err, eventlog.ErrConfig, "restore")
}

// TestRestoreThatIsReplacedAtItsEnd: another restore replaces what this one has checked, between its last look and the request that ends it. Nothing can
// refuse this request, but it does not say that it has ended well.
func TestRestoreThatIsReplacedAtItsEnd(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL()}
	shorter, refused := backedUp(t, 1), errors.New("it is not whole")
	err := eventlog.RestoreHooked(t.Context(), o, backedUp(t, 2)(nil), func(what string) {
		if what == "update SCUTE" {
			other := eventlog.RestoreExternal(t.Context(), o, shorter(func(context.Context, *eventlog.Log) error { return refused }))
			if !errors.Is(other, refused) {
				t.Errorf("the other restore: %v", other)
			}
		}
	})
	wantErr(t, err, eventlog.ErrExists, "delete that stream")
}

// TestRestoreThatADaemonReplaces: a daemon makes its log in the place of what was restored, at the same moment. The restore does not call it one that
// nobody needs.
func TestRestoreThatADaemonReplaces(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
	nc, err := nats.Connect(o.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	err = eventlog.RestoreHooked(t.Context(), o, backedUp(t, 2)(nil), func(what string) {
		if what == "update SCUTE" {
			if _, err := nc.Request("$JS.API.STREAM.DELETE.SCUTE", nil, time.Minute); err != nil {
				t.Error(err)
			}
			mustAppend(t, connectTest(t, o), commit(moveOf("a"), "1", 0, 1))
		}
	})
	wantErr(t, err, eventlog.ErrExists, "daemon", "commits up to 1", "if nobody needs")
}
