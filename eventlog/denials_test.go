package eventlog_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// TestDeniedRequest checks that a denied request fails at once with the missing permission, without further log output,
// and that requests succeed again once the permission is granted.
func TestDeniedRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nats.conf")
	grant := func(user string) *server.Options {
		t.Helper()
		config := `listen: "127.0.0.1:-1", jetstream {}, authorization { users: [ {user: daemon, password: x}, {user: other, password: x, permissions: {` + user + `}} ] }`
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := server.ProcessConfigFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	const reads = `"$JS.API.STREAM.INFO.>", "$JS.API.STREAM.MSG.GET.>", `
	o := grant(`publish: [` + reads + `]`)
	srv := logtest.Serve(t, o)
	as := func(user string) eventlog.ExternalOptions {
		return eventlog.ExternalOptions{URL: strings.Replace(srv.ClientURL(), "//", "//"+user+":x@", 1), Create: user == "daemon"}
	}
	daemon := connectTest(t, as("daemon"))
	mustAppend(t, daemon, commit(moveOf("a"), "1", 0, 1))

	warnings := make(lineWriter, 100)
	other := as("other")
	other.Logger = slog.New(slog.NewTextHandler(warnings, nil))
	l := connectTest(t, other)
	second := commit(moveOf("a"), "2", 1, 1)
	_, err := l.Append(t.Context(), second)
	wantErr(t, err, eventlog.ErrPermission, `publish to "scute.log.move.a"`, "give the user this permission")
	wantErr(t, err, eventlog.ErrUnavailable)
	_, err = l.Replay(t.Context(), 0, func(eventlog.Record) error { return nil })
	wantErr(t, err, eventlog.ErrPermission, `publish to "$JS.API.CONSUMER.CREATE.SCUTE.`)
	if len(warnings) > 0 {
		t.Errorf("log output for a denied request: %s", <-warnings)
	}

	reload := func(user string) {
		t.Helper()
		granted := grant(user)
		granted.Port, granted.JetStream, granted.NoSigs, granted.NoLog, granted.JetStreamMaxStore, granted.StoreDir = o.Port, o.JetStream, o.NoSigs, o.NoLog, o.JetStreamMaxStore, o.StoreDir
		if err := srv.ReloadOptions(granted); err != nil {
			t.Fatal(err)
		}
	}
	reload(`publish: [` + reads + `"scute.log.>"]`)
	mustAppend(t, l, second)
	// A stored commit is found even if its user may no longer append.
	reload(`publish: [` + reads + `]`)
	if r, err := l.Append(t.Context(), second); err != nil || !r.AlreadyStored {
		t.Errorf("append of a stored commit = %+v, error %v, want AlreadyStored", r, err)
	}
	reload(`publish: ["$JS.API.STREAM.INFO.>"]`)
	_, err = l.Append(t.Context(), commit(moveOf("a"), "3", 2, 1))
	wantErr(t, err, eventlog.ErrPermission, "unknown whether the commit is stored")
	reload(`publish: ["other"]`)
	_, err = eventlog.Connect(t.Context(), other)
	wantErr(t, err, eventlog.ErrPermission, `publish to "$JS.API.STREAM.INFO.SCUTE"`)
}
