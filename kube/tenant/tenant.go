package tenant

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/client-go/rest"

	"scute.dev/kube"
	"scute.dev/kube/guard"
)

const (
	// inAll bounds the connections to all clusters together, perCluster those to one: twice the members of an etcd that are
	// asked at once, by two ways, and the API server.
	inAll      = 128
	perCluster = 20
	// mostTries are made for the addresses of one name: the owner of the name has as many addresses as it likes.
	mostTries = 4
)

// Dialer connects to clusters. One is shared by all who do: it bounds how many connections there are.
type Dialer struct {
	guard *guard.Guard
	all   *semaphore.Weighted

	mu       sync.Mutex
	clusters map[string]*places
}

// places of one cluster, as long as somebody uses or wants one.
type places struct {
	*semaphore.Weighted
	users int
}

// New makes a Dialer that reaches what the guard allows.
func New(g *guard.Guard) *Dialer {
	return &Dialer{guard: g, all: semaphore.NewWeighted(inAll), clusters: make(map[string]*places)}
}

// Cluster is one cluster with the credentials for its API server.
type Cluster struct {
	dialer *Dialer
	name   string
	config *rest.Config
	tls    *tls.Config
	base   *url.URL
}

// Cluster prepares connections to a cluster; it sends nothing. All who name the cluster alike share its places.
func (d *Dialer) Cluster(name string, config *rest.Config) (*Cluster, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("%w: its server is no URL", kube.ErrKubeconfig)
	}
	settings, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("%w: its certificates cannot be read (the content is not shown)", kube.ErrKubeconfig)
	}
	if settings == nil {
		settings = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	settings.NextProtos = []string{"http/1.1"} // the only one that can be upgraded
	return &Cluster{dialer: d, name: name, config: config, tls: settings, base: base}, nil
}

// Dial connects to an address of the cluster. The connection ends with ctx, which must have a deadline.
func (c *Cluster) Dial(ctx context.Context, address string) (net.Conn, error) {
	return c.dial(ctx, address, mostBytes)
}

func (c *Cluster) dial(ctx context.Context, address string, most int64) (net.Conn, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil, errors.New("a connection to a workload cluster needs a deadline")
	}
	leave, err := c.dialer.enter(ctx, c.name)
	if err != nil {
		return nil, err
	}
	raw, err := c.dialer.connector().DialContext(ctx, "tcp", address)
	if err != nil {
		leave()
		return nil, err
	}
	ends, stop := context.WithCancel(ctx)
	made := &conn{Conn: raw, most: most, leave: leave, stop: stop}
	made.left.Store(most)
	context.AfterFunc(ends, func() { _ = made.Close() })
	if err := raw.SetDeadline(deadline); err != nil {
		_ = made.Close()
		return nil, err
	}
	return made, nil
}

// enter waits for a place among the connections of a cluster, and then among those of all: one that waits for its own
// keeps none from others.
func (d *Dialer) enter(ctx context.Context, cluster string) (leave func(), err error) {
	of := d.of(cluster)
	if err := of.Acquire(ctx, 1); err != nil {
		d.release(cluster, of)
		return nil, fmt.Errorf("%d connections to the cluster are open, and none was closed in time", perCluster)
	}
	if err := d.all.Acquire(ctx, 1); err != nil {
		of.Release(1)
		d.release(cluster, of)
		return nil, fmt.Errorf("%d connections to clusters are open, and none was closed in time", inAll)
	}
	return func() {
		d.all.Release(1)
		of.Release(1)
		d.release(cluster, of)
	}, nil
}

func (d *Dialer) of(cluster string) *places {
	d.mu.Lock()
	defer d.mu.Unlock()
	of, found := d.clusters[cluster]
	if !found {
		of = &places{Weighted: semaphore.NewWeighted(perCluster)}
		d.clusters[cluster] = of
	}
	of.users++
	return of
}

func (d *Dialer) release(cluster string, of *places) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if of.users--; of.users == 0 {
		delete(d.clusters, cluster)
	}
}

// connector connects once: the guard checks each address, and there are only so many.
func (d *Dialer) connector() *net.Dialer {
	connector := d.guard.Dialer(dialTimeout)
	check, tries := connector.Control, atomic.Int32{}
	connector.Control = func(network, address string, raw syscall.RawConn) error {
		if tries.Add(1) > mostTries {
			return fmt.Errorf("its name has more than %d addresses that do not answer", mostTries)
		}
		return check(network, address, raw)
	}
	return connector
}

// dialTimeout bounds connecting where the context leaves more time.
const dialTimeout = 10 * time.Second
