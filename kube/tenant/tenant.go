package tenant

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
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
	// maxConnections bounds the connections to all clusters. maxPerNamespace bounds those to the
	// clusters of one namespace, whose owner may have many that never respond; it suffices for four
	// clusters at once, as many as are checked by default. maxPerCluster suffices for two
	// connections to each etcd member, and those to the API server.
	maxConnections  = 128
	maxPerNamespace = 80
	maxPerCluster   = 20
	// maxDialAttempts limits how many addresses of one name are dialled, because the owner of the
	// name can list any number.
	maxDialAttempts = 4
)

// Dialer connects to clusters. All callers share one Dialer, because it limits the connections.
type Dialer struct {
	// CheckWritesAllowed returns an error if changes are not allowed at the moment. If it is nil,
	// they are always allowed. Set it before use.
	CheckWritesAllowed func() error

	guard *guard.Guard
	all   *semaphore.Weighted

	mu     sync.Mutex
	limits map[string]*connLimit // by cluster, or by namespace with a slash at the end
}

// connLimit is kept while a caller uses or requests a connection.
type connLimit struct {
	*semaphore.Weighted
	users int
}

// New returns a Dialer that reaches the addresses that the guard allows.
func New(g *guard.Guard) *Dialer {
	return &Dialer{guard: g, all: semaphore.NewWeighted(maxConnections), limits: make(map[string]*connLimit)}
}

// Cluster is a cluster, with credentials for its API server.
type Cluster struct {
	dialer *Dialer
	name   string
	config *rest.Config
	tls    *tls.Config
	base   *url.URL
}

// Cluster returns a Cluster with a name, NAMESPACE/NAME, and sends nothing. Clusters with the same
// name share one limit of connections, and clusters of the same namespace share another.
func (d *Dialer) Cluster(name string, config *rest.Config) (*Cluster, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("%w: its server is not a valid URL", kube.ErrKubeconfig)
	}
	settings, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("%w: its certificates cannot be read (the content is not shown)", kube.ErrKubeconfig)
	}
	if settings == nil {
		settings = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	settings.NextProtos = []string{"http/1.1"} // the only protocol that can be upgraded
	return &Cluster{dialer: d, name: name, config: config, tls: settings, base: base}, nil
}

// CheckWritesAllowed returns an error if changes are not allowed at the moment. Call it right
// before a change that is not a request to the cluster's API server.
func (c *Cluster) CheckWritesAllowed() error {
	if c.dialer.CheckWritesAllowed == nil {
		return nil
	}
	if err := c.dialer.CheckWritesAllowed(); err != nil {
		return fmt.Errorf("not sent: %w", err)
	}
	return nil
}

// Dial connects to an address of the cluster. The connection ends with ctx, which must have a
// deadline.
func (c *Cluster) Dial(ctx context.Context, address string) (net.Conn, error) {
	return c.dial(ctx, address, maxBytes)
}

func (c *Cluster) dial(ctx context.Context, address string, most int64) (net.Conn, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil, errors.New("a connection to a workload cluster needs a deadline")
	}
	leave, err := c.dialer.acquire(ctx, c.name)
	if err != nil {
		return nil, err
	}
	raw, err := c.dialer.newNetDialer().DialContext(ctx, "tcp", address)
	if err != nil {
		leave()
		return nil, err
	}
	ends, stop := context.WithCancel(ctx)
	made := &conn{Conn: raw, maxBytes: most, release: leave, stop: stop}
	made.remaining.Store(most)
	context.AfterFunc(ends, func() { _ = made.Close() })
	if err := raw.SetDeadline(deadline); err != nil {
		_ = made.Close()
		return nil, err
	}
	return made, nil
}

// acquire waits for the limits of the cluster, its namespace, and all clusters, in this order, so
// that a caller that waits for its namespace does not block other namespaces.
func (d *Dialer) acquire(ctx context.Context, cluster string) (leave func(), err error) {
	namespace, _, _ := strings.Cut(cluster, "/")
	var taken []func()
	leave = func() {
		for _, give := range slices.Backward(taken) {
			give()
		}
	}
	for _, bound := range []struct {
		key  string
		most int
		of   string
	}{{cluster, maxPerCluster, "the cluster"}, {namespace + "/", maxPerNamespace, "the clusters of namespace " + namespace}} {
		of := d.limitFor(bound.key, bound.most)
		if err := of.Acquire(ctx, 1); err != nil {
			d.releaseLimit(bound.key, of)
			leave()
			return nil, fmt.Errorf("%d connections to %s are open, and none was closed in time", bound.most, bound.of)
		}
		taken = append(taken, func() {
			of.Release(1)
			d.releaseLimit(bound.key, of)
		})
	}
	if err := d.all.Acquire(ctx, 1); err != nil {
		leave()
		return nil, fmt.Errorf("%d connections to clusters are open, and none was closed in time", maxConnections)
	}
	taken = append(taken, func() { d.all.Release(1) })
	return leave, nil
}

func (d *Dialer) limitFor(key string, most int) *connLimit {
	d.mu.Lock()
	defer d.mu.Unlock()
	of, found := d.limits[key]
	if !found {
		of = &connLimit{Weighted: semaphore.NewWeighted(int64(most))}
		d.limits[key] = of
	}
	of.users++
	return of
}

func (d *Dialer) releaseLimit(key string, of *connLimit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if of.users--; of.users == 0 {
		delete(d.limits, key)
	}
}

func (d *Dialer) newNetDialer() *net.Dialer {
	connector := d.guard.Dialer(dialTimeout)
	check, tries := connector.Control, atomic.Int32{}
	connector.Control = func(network, address string, raw syscall.RawConn) error {
		if tries.Add(1) > maxDialAttempts {
			return fmt.Errorf("its name has more than %d addresses that do not respond", maxDialAttempts)
		}
		return check(network, address, raw)
	}
	return connector
}

const dialTimeout = 10 * time.Second

// ErrTooLarge is wrapped by the error that ends a connection that received more than any response
// needs.
var ErrTooLarge = errors.New("it sends too much")

const (
	// maxBytes bounds the bytes read from one connection, encryption included.
	maxBytes = 512 << 10
	// maxHeader bounds an HTTP header.
	maxHeader = 16 << 10
	// maxOutput bounds each output stream and the status of a command.
	maxOutput = 64 << 10
)

// conn ends when its context ends, when it is closed, or when it has received too many bytes.
type conn struct {
	net.Conn
	maxBytes  int64
	remaining atomic.Int64
	stop      func() // stops watching the context
	release   func()
	once      sync.Once
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.remaining.Add(int64(-n)) < 0 {
		_ = c.Close()
		return 0, fmt.Errorf("%w: more than %d KiB on one connection", ErrTooLarge, c.maxBytes>>10)
	}
	return n, err
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.stop()
		c.release()
	})
	return err
}
