package eventlog_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/drop"
	"scute.dev/eventlog/logtest"
)

// TestDropOnAFullServer: where there is no room for what is kept, nothing is changed.
func TestDropOnAFullServer(t *testing.T) {
	srv := logtest.Serve(t, &server.Options{})
	limit := func(bytes int64) {
		t.Helper()
		limits := server.JetStreamAccountLimits{MaxMemory: -1, MaxStore: bytes, MaxStreams: -1, MaxConsumers: -1}
		if err := srv.GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{"": limits}); err != nil {
			t.Fatal(err)
		}
	}
	l := connectTest(t, eventlog.ExternalOptions{URL: srv.ClientURL(), Create: true, MaxBytes: 4 << 20})
	l.SettleAfter(0)
	archive := droppable(t, l)
	before := streams(t, l)
	limit(4<<20 + 64<<10) // the open epoch has reserved nearly all
	wantErr(t, dropThrough(t.Context(), l, archive, 2), eventlog.ErrNoRoom, "nothing was changed", "raise the storage limit")
	if got := streams(t, l); !slices.Equal(got, before) {
		t.Errorf("the streams are %v, were %v", got, before)
	}
	limit(8 << 20)
	if err := dropThrough(t.Context(), l, archive, 2); err != nil {
		t.Fatal(err)
	}
	hasDropped(t, l, 2)
}

// TestDropEndsWhenAllIsDeleted: it is not over while the server may not have written what is kept, however early the wait for that returns.
func TestDropEndsWhenAllIsDeleted(t *testing.T) {
	l := connectTest(t, eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true})
	archive := droppable(t, l)
	l.SettleAfter(time.Hour)
	plan, err := drop.Prepare(t.Context(), l, archive, 2, newLongLives, nil)
	if err != nil {
		t.Fatal(err)
	}
	waits := 0
	err = plan.Carry(t.Context(), "user/test", "a test", decided, drop.Waits{Unsettled: func(_ context.Context, until time.Time) error {
		waits++
		if left := time.Until(until); left <= 0 || left > time.Hour {
			t.Errorf("it waits for %s", left)
		}
		if got := streams(t, l); len(got) != 5 {
			t.Errorf("the streams are %v, want all until the server has written what is kept", got)
		}
		if waits == 2 {
			l.SettleAfter(0)
		}
		return nil
	}})
	if got := streams(t, l); err != nil || waits != 2 || !slices.Equal(got, []string{"SCUTE_3", "SCUTE_4", "SCUTE_KEPT_2"}) {
		t.Errorf("%v after %d waits; the streams are %v", err, waits, got)
	}
}
