package eventlog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// TestWithoutALeader stops two of three servers. After some seconds the remaining server answers for the stream without
// a leader, with its own state, which may be outdated. The log must report itself as unavailable, and continue when a
// second server is back.
func TestWithoutALeader(t *testing.T) {
	t.Parallel()
	servers, urls := logtest.Cluster(t)
	ctx := withTimeout(t, 5*time.Minute)
	l := connectEventually(t, eventlog.ExternalOptions{URL: urls, Replicas: 3, Create: true})
	last := mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
	servers[1].Stop()
	servers[2].Stop()
	for answered := false; !answered; {
		asking, cancel := context.WithTimeout(ctx, time.Second)
		info, err := l.Stream().Info(asking)
		cancel()
		answered = err == nil && info.Cluster.Leader == ""
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	_, opened := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: urls})
	_, head := l.Head(ctx)
	for what, err := range map[string]error{"health": l.Health(ctx), "head": head, "open": opened} {
		if !errors.Is(err, eventlog.ErrUnavailable) {
			t.Errorf("%s = %v, want %v", what, err, eventlog.ErrUnavailable)
		}
	}
	servers[1].Restart(t)
	var ends uint64
	if err := retryUnavailable(ctx, func() error {
		at, err := l.Head(ctx)
		ends = at
		return errors.Join(err, l.Health(ctx))
	}); err != nil || ends != last {
		t.Errorf("Head = %d, want %d (error %v)", ends, last, err)
	}
}
