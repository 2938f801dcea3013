package logcmd

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
)

// wordWaiter is a buffer that closes a channel when a word is written.
type wordWaiter struct {
	bytes.Buffer
	word string
	seen chan struct{}
}

func (u *wordWaiter) Write(p []byte) (int, error) {
	before := strings.Contains(u.String(), u.word)
	n, err := u.Buffer.Write(p)
	if !before && strings.Contains(u.String(), u.word) {
		close(u.seen)
	}
	return n, err
}

// TestRestoreSaysWhatHappensOnTheWay checks that errors of the connection to the NATS server are shown during a
// restore, and that a denied request ends it at once.
func TestRestoreSaysWhatHappensOnTheWay(t *testing.T) {
	dir, backup := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	run := func(ctx context.Context, errs io.Writer, newCmd func(*cli.Env) *cobra.Command, args ...string) error {
		env := cli.System("scutectl", "test")
		env.Out, env.Err = io.Discard, errs
		cmd := newCmd(env)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		return cmd.ExecuteContext(ctx)
	}
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	first := eventlog.Commit{
		Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a/b"}, ID: "1",
		Events: []eventlog.Event{{Type: "dev.scute.move.started.v1", Time: time.Now(), Actor: "test", Data: []byte(`{}`)}},
	}
	if _, err := log.Append(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), io.Discard, newCmdBackup, backup, "--log", dir); err != nil {
		t.Fatal(err)
	}
	srv := logtest.Serve(t, &server.Options{Users: []*server.User{
		{Username: "deaf", Password: "x", Permissions: &server.Permissions{Subscribe: &server.SubjectPermission{Allow: []string{"other"}}}},
		{Username: "reader", Password: "x", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{"$JS.API.STREAM.INFO.>"}}}},
	}})
	as := func(user string) string { return strings.Replace(srv.ClientURL(), "//", "//"+user+":x@", 1) }
	told := &wordWaiter{word: "permissions violation", seen: make(chan struct{})}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, told, newCmdRestore, backup, "--nats", as("deaf")) }()
	select {
	case <-told.seen:
		stop()
		<-ended
	case err := <-ended:
		t.Errorf("restore ended without a message: %q, %v", told.String(), err)
	}
	err = run(t.Context(), io.Discard, newCmdRestore, backup, "--nats", as("reader"))
	if want := `denies this user a request: publish to "$JS.API.STREAM.RESTORE.SCUTE"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("restore = %v, want %s", err, want)
	}
}
