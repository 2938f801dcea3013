package backup_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/logtest"
)

// startCluster starts a cluster and waits until it has elected its leader.
func startCluster(t *testing.T) (servers []*logtest.Member, urls string) {
	t.Helper()
	servers, urls = logtest.Cluster(t)
	for !slices.ContainsFunc(servers, func(s *logtest.Member) bool {
		return s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == len(servers)
	}) {
		select {
		case <-t.Context().Done():
			t.Fatal("the cluster has no leader")
		case <-time.After(10 * time.Millisecond):
		}
	}
	return servers, urls
}

// TestRestoreToACluster checks that all three servers have the restored log, also after an interrupted restore.
func TestRestoreToACluster(t *testing.T) {
	from := t.TempDir()
	m := backUp(t, newLog(t, 400), from)
	servers, urls := startCluster(t)
	o := eventlog.ExternalOptions{URL: urls, Replicas: 3}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cut := errors.New("cut off")
	bad := backup.Source(from, m, nil, nil)
	bad.Check = func(context.Context, *eventlog.Log) error { return cut }
	if err := eventlog.RestoreExternal(ctx, o, bad); !errors.Is(err, cut) {
		t.Fatal(err)
	}
	good := backup.Source(from, m, nil, nil)
	var waited []string
	good.OnWait = func(what string) { waited = append(waited, what) }
	if err := eventlog.RestoreExternal(ctx, o, good); err != nil {
		t.Fatal(err)
	}
	if len(waited) == 0 || !strings.HasPrefix(waited[0], "for all 3 servers of stream "+eventlog.StreamName) {
		t.Errorf("Waiting was called with %q", waited)
	}
	if got := treeCheckpoint(t, o.URL); got != m.Checkpoint() {
		t.Errorf("restored %+v, want %+v", got, m.Checkpoint())
	}
	appendCommits(t, o.URL, 3)

	// Stop the leader, which had the commits first.
	l, err := eventlog.Connect(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	logtest.Leader(t, servers, eventlog.StreamName).Stop()
	for err = l.Health(ctx); errors.Is(err, eventlog.ErrUnavailable); {
		err = l.Health(ctx)
	}
	if err != nil {
		t.Error(err)
	}
	// The stopped server may also have led the cluster. Until the others have elected a leader, no log can be opened.
	again, err := eventlog.Connect(ctx, o)
	for ; errors.Is(err, eventlog.ErrUnavailable) && ctx.Err() == nil; again, err = eventlog.Connect(ctx, o) {
	}
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := treeCheckpoint(t, o.URL); got.Size != m.Checkpoint().Size+3 {
		t.Errorf("the remaining servers have %d commits, want all", got.Size)
	}
}
