package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/logtest"
)

// TestDropWhileTheLogIsUsed: while epochs are dropped, again and again, others append, close epochs, read from the beginning, follow and open the log.
// Nothing that was acknowledged is missing, who follows from the end gets everything, and nobody takes the log for lost.
func TestDropWhileTheLogIsUsed(t *testing.T) {
	o := eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true}
	dropper, closer, appender, follower, reader := connectTest(t, o), connectTest(t, o), connectTest(t, o), connectTest(t, o), connectTest(t, eventlog.ExternalOptions{URL: o.URL})
	dropper.SettleAfter(0)
	closer.SettleAfter(0)
	appender.SettleAfter(0)
	ctx, cancel := context.WithCancel(t.Context())
	var all, follows sync.WaitGroup
	until := func(what string, do func(n int) error) {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := do(n); err != nil && ctx.Err() == nil {
					t.Errorf("%s %d: %v", what, n, err)
					return
				}
			}
		})
	}
	var long, count uint64
	until("appending", func(n int) error {
		r, err := appender.Append(t.Context(), commit(moveOf("long"), fmt.Sprint(n), long, 1))
		if err == nil {
			long = r.Seq
			count++
			_, err = appender.Append(t.Context(), commit(moveOf(fmt.Sprint("m", n)), "1", 0, 1))
		}
		return err
	})
	until("reading", func(int) error {
		_, err := reader.Replay(ctx, 0, func(eventlog.Record) error { return nil })
		if errors.Is(err, eventlog.ErrDropped) { // it was in the middle of what was dropped
			err = nil
		}
		return err
	})
	until("looking", func(int) error { return reader.Health(ctx) })
	until("opening", func(int) error {
		l, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: o.URL})
		if err == nil {
			err = l.Close()
		}
		return err
	})
	followed := uint64(0)
	following, stop := context.WithCancel(t.Context())
	follows.Go(func() {
		err := follower.Follow(following, 0, func(r eventlog.Record) error {
			if r.Seq != followed+1 {
				t.Errorf("after %d comes %d", followed, r.Seq)
			}
			followed = r.Seq
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("following: %v", err)
		}
	})
	archive := filepath.Join(t.TempDir(), "archive")
	for through := 1; through <= 6; through++ {
		for begun := false; !begun; {
			err := closer.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test", Time: decided})
			begun = err == nil
			if err != nil && !errors.Is(err, eventlog.ErrEmptyEpoch) {
				t.Fatal(err)
			}
		}
		if _, err := backup.Write(t.Context(), closer, archive, backup.Options{Now: decided}); err != nil {
			t.Fatal(err)
		}
		if err := dropThrough(t.Context(), dropper, archive, through); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	all.Wait()
	head, err := appender.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	records, err := appender.Read(t.Context(), moveOf("long"), 0)
	if err != nil || uint64(len(records)) != count {
		t.Errorf("%d commits, want %d: %v", len(records), count, err)
	}
	if _, err := follower.Replay(t.Context(), head-1, func(eventlog.Record) error { return nil }); err != nil {
		t.Error(err)
	}
	stop()
	follows.Wait()
}
