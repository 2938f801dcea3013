package logcmd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
)

// TestAskToClose: the command prints of an epoch that the daemon closes what it prints of one that it closes itself. It ends with the
// reason of a daemon that refuses, and says what to do where none answers.
func TestAskToClose(t *testing.T) {
	closes := func(ctx context.Context, log *eventlog.Log, r eventlog.CloseRequest) error {
		c := r.Closing
		c.Epoch = r.Epoch
		return log.CloseEpoch(ctx, c)
	}
	refuses := func(ctx context.Context, log *eventlog.Log, r eventlog.CloseRequest) error {
		return log.RefuseClose(ctx, r, "daemon/one", "no room for it", time.Now())
	}
	for name, c := range map[string]struct {
		daemon      func(ctx context.Context, log *eventlog.Log, r eventlog.CloseRequest) error
		timeout     time.Duration
		before      bool // somebody asked before
		out, errors string
		notes       string
	}{
		"closed":      {closes, time.Minute, false, "closed: epoch 1 of log ID at there, commits 1 to 3; the log continues in stream SCUTE_2\n", "", "Waiting up to 1m for the daemon to close epoch 1"},
		"asked again": {closes, time.Minute, true, "closed: epoch 1 of log ID", "", "user/joe (unverified) asked for it already, and is named in the log: full"},
		"refused":     {refuses, time.Minute, false, "", "the daemon does not close epoch 1 of log ID at there: no room for it", ""},
		"no answer":   {nil, time.Millisecond, false, "", "has not closed epoch 1 of log ID at there within 1ms; the request stays in the log", ""},
	} {
		t.Run(name, func(t *testing.T) {
			log := logtest.Open(t)
			ctx, stop := context.WithCancel(t.Context())
			first := eventlog.Commit{
				Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a/b"}, ID: "1",
				Events: []eventlog.Event{{Type: "dev.scute.move.started.v1", Time: time.Now(), Actor: "test", Data: []byte(`{}`)}},
			}
			if _, err := log.Append(ctx, first); err != nil {
				t.Fatal(err)
			}
			if c.before {
				if _, err := log.RequestClose(ctx, eventlog.Closing{Actor: "user/joe", Reason: "full", Time: time.Now()}); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = log.Follow(ctx, 0, func(eventlog.Record) error {
					r, ok, err := log.OpenCloseRequest(ctx)
					if ok && c.daemon != nil {
						return c.daemon(ctx, log, r)
					}
					return err
				})
			}()
			defer func() { stop(); <-ended }()
			var out, notes bytes.Buffer
			env := cli.System("scutectl", "test")
			env.Out, env.Err = &out, &notes
			o := &closeOptions{deps: deps{&kit.Kit{Env: env, Flags: connect.New()}}, Wait: kit.Wait{Wait: true, Timeout: c.timeout}}
			err := o.ask(ctx, &connect.Log{Log: log, Where: "there", Guarded: true}, eventlog.Closing{Actor: "user/jane", Reason: "end of 2026", Time: time.Now()})
			id := func(s string) string { return strings.ReplaceAll(s, "ID", log.ID()) }
			if (err == nil) != (c.errors == "") || err != nil && !strings.Contains(err.Error(), id(c.errors)) {
				t.Errorf("%v, want %q", err, id(c.errors))
			}
			if !strings.HasPrefix(out.String(), id(c.out)) || c.out == "" && out.Len() > 0 || !strings.Contains(notes.String(), c.notes) {
				t.Errorf("%q, %q", out.String(), notes.String())
			}
		})
	}
}

// TestCloseWithoutThePermission: an operator, who may not create the next stream, is told how to have the daemon close the epoch.
func TestCloseWithoutThePermission(t *testing.T) {
	const token = "a-token-of-operators-long-enough"
	access := &embedded.Access{}
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Access: access})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	first := eventlog.Commit{
		Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a/b"}, ID: "1",
		Events: []eventlog.Event{{Type: "dev.scute.move.started.v1", Time: time.Now(), Actor: "test", Data: []byte(`{}`)}},
	}
	if _, err := log.Append(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	access.Set(embedded.Operator, token)
	env := cli.System("scutectl", "test")
	env.Out, env.Err = io.Discard, io.Discard
	o := &closeOptions{deps: deps{&kit.Kit{Env: env, Flags: connect.New()}}, Reason: "full", Wait: kit.Wait{Wait: true, Timeout: time.Minute}}
	o.Flags.URL = strings.Replace(log.URL(), "://", "://"+token+"@", 1)
	err = o.run(t.Context())
	if !errors.Is(err, eventlog.ErrPermission) || !strings.Contains(err.Error(), "add --request: the daemon closes it then") {
		t.Errorf("%v", err)
	}
}
