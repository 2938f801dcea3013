package backup_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
)

// cluster is three NATS servers that hold streams together.
func cluster(t *testing.T) string {
	t.Helper()
	var urls []string
	routes := []*url.URL{{Scheme: "nats", Host: "127.0.0.1:1"}} // a server with a route, even to nobody, is of a cluster
	for i := range 3 {
		srv, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("n%d", i), JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, Host: "127.0.0.1", Port: server.RANDOM_PORT,
			Cluster: server.ClusterOpts{Name: "scute", Host: "127.0.0.1", Port: server.RANDOM_PORT}, Routes: routes, JetStreamMaxStore: 1 << 40,
		})
		if err != nil {
			t.Fatal(err)
		}
		srv.Start()
		t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
		if !srv.ReadyForConnections(20 * time.Second) {
			t.Fatal("the server did not start")
		}
		routes = []*url.URL{{Scheme: "nats", Host: srv.ClusterAddr().String()}}
		urls = append(urls, srv.ClientURL())
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
	for { // until the cluster has elected its leaders
		try, cancel := context.WithTimeout(ctx, 15*time.Second)
		err := eventlog.RestoreExternal(try, o, bad)
		cancel()
		if errors.Is(err, cut) {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	if err := eventlog.RestoreExternal(ctx, o, backup.Restored(from, m, nil, nil)); err != nil {
		t.Fatal(err)
	}
	if got := root(t, o.URL); got != m.Checkpoint() {
		t.Errorf("restored %+v, want %+v", got, m.Checkpoint())
	}
	appendTo(t, o.URL, 3)
}
