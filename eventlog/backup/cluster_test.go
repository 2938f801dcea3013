package backup_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/logtest"
)

// cluster is three NATS servers that hold streams together.
func cluster(t *testing.T) string {
	t.Helper()
	var urls []string
	var servers []*server.Server
	routes := []*url.URL{{Scheme: "nats", Host: "127.0.0.1:1"}} // a server with a route, even to nobody, is of a cluster
	for i := range 3 {
		srv := logtest.Serve(t, &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Cluster: server.ClusterOpts{Name: "scute", Host: "127.0.0.1", Port: server.RANDOM_PORT}, Routes: routes,
		})
		routes = []*url.URL{{Scheme: "nats", Host: srv.ClusterAddr().String()}}
		urls, servers = append(urls, srv.ClientURL()), append(servers, srv)
	}
	for !slices.ContainsFunc(servers, func(s *server.Server) bool {
		return s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == len(servers)
	}) {
		select {
		case <-t.Context().Done():
			t.Fatal("the cluster has no leader")
		case <-time.After(10 * time.Millisecond):
		}
	}
	return strings.Join(urls, ",")
}

// TestRestoreToACluster: three servers hold what was restored, also when a restore before was cut off.
func TestRestoreToACluster(t *testing.T) {
	from := t.TempDir()
	m := backedUp(t, logOf(t, 400), from)
	o := eventlog.ExternalOptions{URL: cluster(t), Replicas: 3}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cut := errors.New("cut off")
	bad := backup.Restored(from, m, nil, nil)
	bad.Check = func(context.Context, *eventlog.Log) error { return cut }
	if err := eventlog.RestoreExternal(ctx, o, bad); !errors.Is(err, cut) {
		t.Fatal(err)
	}
	if err := eventlog.RestoreExternal(ctx, o, backup.Restored(from, m, nil, nil)); err != nil {
		t.Fatal(err)
	}
	if got := root(t, o.URL); got != m.Checkpoint() {
		t.Errorf("restored %+v, want %+v", got, m.Checkpoint())
	}
	appendTo(t, o.URL, 3)
}
