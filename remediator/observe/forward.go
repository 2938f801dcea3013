package observe

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/internal/redact"
	"scute.dev/kube/object"
	"scute.dev/kube/tenant"
	"scute.dev/view"
)

const (
	etcdPort = 2379
	// maxAnswerSize limits one response of a member, and maxTrailerSize its headers, in bytes. A
	// list of a few members takes 1 KiB.
	maxAnswerSize  = 64 << 10
	maxTrailerSize = 8 << 10
)

type dialer struct {
	cluster   *tenant.Cluster
	tls       func(distrusted func(error)) *tls.Config
	addresses map[string][]string // of client ports, by node
	timeouts
}

func (o *Observer) dialer(ctx context.Context, key types.NamespacedName, cluster *tenant.Cluster) (*dialer, error) {
	addresses, err := o.addresses(ctx, key)
	if err != nil {
		return nil, err
	}
	tlsFor, err := o.etcdTLS(ctx, key)
	if err != nil {
		return nil, err
	}
	return &dialer{cluster: cluster, tls: tlsFor, addresses: addresses, timeouts: defaultTimeouts()}, nil
}

// line is a connection to one member. It records whether the dial and the TLS handshake succeeded,
// because the meaning of an error depends on that.
type line struct {
	*grpc.ClientConn
	route      route
	timeout    time.Duration // of one query
	mu         sync.Mutex
	reached    bool  // a connection was accepted
	refused    error // why the last attempt to connect failed
	distrusted error // why the member's certificate was rejected
}

// open returns a connection to the member on a node, which is established at the first call. The
// connection ends when ctx ends, which must have a deadline.
func (d *dialer) open(ctx context.Context, node string, by route) (*line, error) {
	l := &line{route: by, timeout: d.forRoute(by)}
	pod := podOf(node)
	var err error
	l.ClientConn, err = grpc.NewClient("passthrough:///"+cmp.Or(by.address, pod), append(dialOptions(),
		grpc.WithAuthority(pod),
		grpc.WithTransportCredentials(credentials.NewTLS(d.tls(l.recordDistrust))),
		grpc.WithContextDialer(func(context.Context, string) (conn net.Conn, err error) {
			if by.address != "" {
				conn, err = d.cluster.Dial(ctx, by.address)
			} else {
				conn, err = d.cluster.Forward(ctx, metav1.NamespaceSystem, pod, etcdPort)
			}
			l.recordDial(err)
			return conn, err
		}))...)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func podOf(node string) string { return "etcd-" + node }

func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswerSize)), grpc.WithMaxHeaderListSize(maxTrailerSize),
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
	}
}

func (l *line) recordDial(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reached, l.refused = l.reached || err == nil, err
}

func (l *line) recordDistrust(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.distrusted = err
}

// classify returns what an error of a call means, and a reason: False if the member is unhealthy,
// Unknown if it could not be queried.
//
//	no connection was accepted      Unknown: a dead kubelet cannot be distinguished from a dead node
//	TLS failed in either direction  Unknown: its certificate is not of its CA, or it rejects ours
//	no answer in time               Unknown
//	its client port fails           Unknown: another machine may have the address
//	any other error                 False: the node accepts connections, but etcd fails or is down
func (l *line) classify(err error) (object.ConditionStatus, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.reached && l.refused != nil:
		return object.Unknown, "no connection " + l.route.description() + ": " + shorten(l.refused)
	case l.distrusted != nil:
		return object.Unknown, "its certificate cannot be trusted: " + shorten(l.distrusted)
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded, status.Code(err) == codes.Canceled:
		return object.Unknown, "no answer within " + view.Duration(l.timeout)
	case strings.Contains(err.Error(), "remote error: tls"):
		return object.Unknown, "it rejects the client certificate: " + shorten(err)
	case l.route.address != "":
		return object.Unknown, shorten(err)
	case status.Code(err) == codes.Unavailable:
		return object.False, "its node answers, and etcd does not: " + shorten(err)
	default:
		return object.False, shorten(err)
	}
}

// shorten returns the text of an error as one printable line of bounded length with secrets
// redacted. The error may contain text of a tenant.
func shorten(err error) string {
	const considered, longest = 1000, 200
	text := err.Error()
	if s, ok := status.FromError(err); ok {
		text = s.Message()
	}
	return object.Truncate(redact.Text(object.Truncate(text, considered)), longest)
}
