package eventlog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// TestDropOnThreeServers: at each step of a drop the server goes that leads the stream with what is kept, or the one with the open epoch, while others
// append. The drop is done, or can be run again; nothing that was acknowledged is missing, and no server has what was dropped.
func TestDropOnThreeServers(t *testing.T) {
	for _, c := range []struct{ step, leads string }{
		{"made", "SCUTE_KEPT_3"}, {"decided", "SCUTE_4"}, {"decided", "SCUTE_KEPT_3"}, {"switched", "SCUTE_KEPT_3"}, {"deleted", "SCUTE_KEPT_3"},
	} {
		t.Run(c.step+" "+c.leads, func(t *testing.T) {
			t.Parallel()
			servers, urls := logtest.Cluster(t)
			o := eventlog.ExternalOptions{URL: urls, Replicas: 3, Create: true}
			dropper, appender := connectEventually(t, o), connectEventually(t, o)
			archive := droppable(t, dropper)
			dropper.SettleAfter(0)
			appender.SettleAfter(0)
			ctx := within(t, 5*time.Minute)
			var gone *logtest.Member
			dropper.OnClosing(func(step string) {
				if step == c.step && gone == nil {
					gone = logtest.Leader(t, servers, streamOf(t, dropper, c.leads))
					gone.Stop()
				}
			})
			last, acknowledged := uint64(0), 0
			add := func() {
				t.Helper()
				if err := persist(ctx, func() error {
					r, err := appender.Append(ctx, commit(moveOf("beside"), fmt.Sprint(acknowledged), last, 1))
					last = r.Seq
					return err
				}); err != nil {
					t.Fatal(err)
				}
				acknowledged++
			}
			add()
			if err := persist(ctx, func() error {
				err := dropThrough(ctx, dropper, archive, 3)
				if errors.Is(err, eventlog.ErrNothingToDrop) {
					return nil
				}
				if err != nil && gone != nil && !gone.Running() {
					gone.Restart(t) // what is kept is made on all servers
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if gone == nil {
				t.Fatal("no server went")
			}
			add()
			fresh := connectEventually(t, o)
			for _, l := range []*eventlog.Log{dropper, appender, fresh} {
				if records, err := l.Read(ctx, moveOf("beside"), 0); err != nil || len(records) != acknowledged {
					t.Errorf("%d of %d commits, %v", len(records), acknowledged, err)
				}
				if _, err := l.At(ctx, 1); !errors.Is(err, eventlog.ErrDropped) {
					t.Errorf("the first commit: %v", err)
				}
				hasDropped(t, l, 3)
			}
			if got := streams(t, fresh); !slices.Equal(got, []string{"SCUTE_4", "SCUTE_KEPT_3"}) {
				t.Errorf("the streams are %v", got)
			}
		})
	}
}

// streamOf is the stream of a log whose name is this, or begins with it and has a random end.
func streamOf(t *testing.T, l *eventlog.Log, name string) string {
	t.Helper()
	list := l.JetStream().StreamNames(t.Context())
	for full := range list.Name() {
		if full == name || strings.HasPrefix(full, name+"_") {
			return full
		}
	}
	t.Fatalf("there is no stream %s: %v", name, list.Err())
	return ""
}
