package observe

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/proxy"

	"scute.dev/kube/object"
)

const etcdPort = 2379

// dialer connects to the members of one etcd.
type dialer struct {
	config    *rest.Config // of the cluster's API server
	tls       func(distrusted func(error)) *tls.Config
	addresses map[string][]string // of client ports, by node
}

func (e *Eye) dialer(ctx context.Context, cluster types.NamespacedName, config *rest.Config) (*dialer, error) {
	addresses, err := e.addresses(ctx, cluster)
	if err != nil {
		return nil, err
	}
	tlsFor, err := e.etcdTLS(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return &dialer{config: config, tls: tlsFor, addresses: addresses}, nil
}

// line is a connection to one member, and how far it came: what a failure means depends on that.
type line struct {
	*grpc.ClientConn
	way        way
	mu         sync.Mutex
	reached    bool  // somebody took the connection
	refused    error // why nobody did
	distrusted error // the member's certificate
}

// open prepares a connection to the member on a node, by its client port or by a port-forward to its pod; nothing is sent
// before the first call. Whatever is opened ends with ctx, which must have a deadline, also what waits for an API server
// that is silent.
func (d *dialer) open(ctx context.Context, node string, by way) (*line, error) {
	dial := dialPort
	if by.address == "" {
		forward, err := d.forward(ctx)
		if err != nil {
			return nil, err
		}
		dial = forward.DialContextWithAddr
	}
	l := &line{way: by}
	pod := podOf(node)
	target := cmp.Or(by.address, pod)
	var err error
	l.ClientConn, err = grpc.NewClient("passthrough:///"+target,
		grpc.WithAuthority(pod),
		grpc.WithTransportCredentials(credentials.NewTLS(d.tls(l.distrust))),
		grpc.WithContextDialer(func(dialing context.Context, target string) (net.Conn, error) {
			conn, err := dial(dialing, target)
			l.dialed(err)
			return conn, err
		}))
	if err != nil {
		return nil, err
	}
	return l, nil
}

func podOf(node string) string { return "etcd-" + node }

func dialPort(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// forward dials pods through the API server: the way that the control plane's own controller takes.
func (d *dialer) forward(ctx context.Context) (*proxy.Dialer, error) {
	return proxy.NewDialer(proxy.Proxy{Kind: "pods", Namespace: metav1.NamespaceSystem, KubeConfig: d.bounded(ctx), Port: etcdPort})
}

// bounded is the configuration for requests that end with ctx.
func (d *dialer) bounded(ctx context.Context) *rest.Config {
	config := rest.CopyConfig(d.config)
	config.Proxy = http.ProxyFromEnvironment // which keeps client-go from caching the connection of a cluster for ever
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &bounded{ctx: ctx, next: next} })
	return config
}

// bounded gives requests that are made without a context one that ends: the dialers of port-forwards take none.
type bounded struct {
	ctx  context.Context //nolint:containedctx // see above
	next http.RoundTripper
}

func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	return b.next.RoundTrip(r.WithContext(b.ctx))
}

func (l *line) dialed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reached, l.refused = l.reached || err == nil, err
}

func (l *line) distrust(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.distrusted = err
}

// meaning of an error of a call: whether the member is not well (False), or could not be asked (Unknown).
//
//	nobody took the connection              Unknown: a dead kubelet and a dead node look the same from here
//	the member's certificate is not its CA's, or it does not take ours: Unknown, we could not ask
//	no answer in time                       Unknown
//	its client port fails in another way    Unknown: another machine may have the address
//	the node takes the connection, and nothing serves etcd's port, or etcd refuses: False
func (l *line) meaning(err error) (object.Truth, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.reached && l.refused != nil:
		return object.Unknown, "no connection " + l.way.through() + ": " + brief(l.refused)
	case l.distrusted != nil:
		return object.Unknown, "its certificate cannot be trusted: " + brief(l.distrusted)
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded, status.Code(err) == codes.Canceled:
		return object.Unknown, fmt.Sprintf("no answer within %s", l.way.timeout())
	case strings.Contains(err.Error(), "remote error: tls"):
		return object.Unknown, "it does not take our certificate: " + brief(err)
	case l.way.address != "":
		return object.Unknown, brief(err)
	case status.Code(err) == codes.Unavailable:
		return object.False, "its node answers, and etcd does not: " + brief(err)
	default:
		return object.False, brief(err)
	}
}

// brief is the text of an error, in one line of bounded length.
func brief(err error) string {
	const longest = 200
	text := err.Error()
	if s, ok := status.FromError(err); ok {
		text = s.Message()
	}
	for _, noise := range []string{"error upgrading connection: ", "unable to upgrade connection: "} {
		text = strings.TrimPrefix(text, noise)
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "..."
	}
	return text
}
