package logtest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
)

// Member is a server of a cluster.
type Member struct {
	*server.Server
	options *server.Options
}

// Stop stops the server at once.
func (m *Member) Stop() {
	m.Shutdown()
	m.WaitForShutdown()
}

// Restart starts a stopped server at its address and with its files.
func (m *Member) Restart(t testing.TB) {
	t.Helper()
	m.Server = Serve(t, m.options)
}

// Cluster starts three servers of one cluster. They elect their leaders later.
func Cluster(t testing.TB) (members []*Member, urls string) {
	t.Helper()
	var all []string
	// Without a route, a server is not a member of a cluster. The address of the route need not have a
	// server. The other servers learn their routes from the first one.
	routes := []*url.URL{{Scheme: "nats", Host: "127.0.0.1:1"}}
	for i := range 3 {
		m := &Member{options: &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Cluster: server.ClusterOpts{Name: "scute", Host: "127.0.0.1", Port: server.RANDOM_PORT}, Routes: routes,
		}}
		m.Restart(t)
		routes = []*url.URL{{Scheme: "nats", Host: m.ClusterAddr().String()}}
		members, all = append(members, m), append(all, m.ClientURL())
	}
	return members, strings.Join(all, ",")
}

// Leader returns the member that leads a stream. All members must run.
func Leader(t testing.TB, members []*Member, stream string) *Member {
	t.Helper()
	nc, err := nats.Connect(members[0].ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if m.Name() == s.CachedInfo().Cluster.Leader {
			return m
		}
	}
	t.Fatalf("no server leads %s", stream)
	return nil
}

// KnownLeaks returns the goroutines that nats-server 2.15 leaks if it is stopped while it creates
// the store of a stream.
func KnownLeaks() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server/ats.Register.func1"),
	}
}
