package logcmd

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
)

// appendCommit appends a commit to the log and closes it.
func appendCommit(t *testing.T, log *eventlog.Log, err error, expected uint64, id string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	_, err = log.Append(t.Context(), eventlog.Commit{
		Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a/b"}, ID: id, Expected: expected,
		Events: []eventlog.Event{{Type: "dev.scute.move.started.v1", Time: time.Now(), Actor: "test", Data: []byte(`{}`)}},
	})
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
}

func migrate(ctx context.Context, dir, url string) error {
	env := cli.System("scutectl", "test")
	env.Out, env.Err = io.Discard, io.Discard
	cmd := newCmdMigrate(env)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--log", dir, "--nats", url})
	return cmd.ExecuteContext(ctx)
}

// TestMigrateAgainAfterTheLogContinued checks that a log that was moved, continued and then deleted at its destination
// is not moved there again, as it would lack its later commits.
func TestMigrateAgainAfterTheLogContinued(t *testing.T) {
	dir, url := t.TempDir(), logtest.Serve(t, &server.Options{}).ClientURL()
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	appendCommit(t, log, err, 0, "1")
	if err := migrate(t.Context(), dir, url); err != nil {
		t.Fatal(err)
	}
	log, err = eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: url})
	appendCommit(t, log, err, 1, "2")
	if err := migrate(t.Context(), dir, url); err != nil {
		t.Errorf("migrate of a moved log: %v", err)
	}
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	// The server removes the folder of an account without streams while the next stream is created.
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"other"}}); err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), eventlog.StreamName); err != nil {
		t.Fatal(err)
	}
	if err := migrate(t.Context(), dir, url); !errors.Is(err, eventlog.ErrMissing) || !strings.Contains(err.Error(), "is not moved there again") {
		t.Errorf("migrate without the second commit = %v, want ErrMissing", err)
	}
	log, err = eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: url, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := migrate(t.Context(), dir, url); err == nil || !strings.Contains(err.Error(), "is not moved there again: that server has log "+log.ID()) {
		t.Errorf("migrate over another log = %v, want an error", err)
	}
}

// TestMigrateTwiceAtOnce checks that a log is not moved to a second destination if another command started to move it
// after this one checked.
func TestMigrateTwiceAtOnce(t *testing.T) {
	dir, url := t.TempDir(), logtest.Serve(t, &server.Options{}).ClientURL()
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	appendCommit(t, log, err, 0, "1")
	if err := embedded.RecordMove(dir, embedded.Moved{LogID: log.ID(), Last: 1, To: "nats://elsewhere:4222"}); err != nil {
		t.Fatal(err)
	}
	// If a command was killed before the log arrived and its server is lost, the error explains how to continue.
	if err := migrate(t.Context(), dir, url); !errors.Is(err, eventlog.ErrMoved) || !strings.Contains(err.Error(), "remove the file scute.moved in the folder") {
		t.Errorf("migrate to another server = %v, want ErrMoved", err)
	}
	env := cli.System("scutectl", "test")
	env.Out, env.Err = io.Discard, io.Discard
	o := &migrateOptions{deps: deps{Kit: &kit.Kit{Env: env, Flags: &connect.Flags{}}}, destination: destination{Replicas: 1}}
	if _, err := o.move(t.Context(), connect.Flags{Dir: dir}, connect.Flags{URL: url}, false); !errors.Is(err, eventlog.ErrMoved) {
		t.Errorf("move to a second server = %v, want ErrMoved", err)
	}
}
