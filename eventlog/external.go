package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"
)

// ExternalOptions configure Connect.
type ExternalOptions struct {
	// URL is one address or several, separated by commas. "tls://..." uses TLS from the first byte.
	URL string
	// CredsFile is a NATS credentials file; "" is none.
	CredsFile string
	// Token is the token of an embedded log that requires one; "" means none.
	Token string
	// TokenFrom returns the token for each connection, for a token that may change. If it is nil,
	// Token is used.
	TokenFrom func() string
	// Dialer opens the connections if the server cannot be reached over the network; nil uses the
	// network.
	Dialer nats.CustomDialer
	// TLS configures the trusted CA and the client certificate.
	TLS TLSFiles
	// Replicas is the number of servers that must hold the log; 0 means 1.
	Replicas int
	// MaxBytes is the size at which the log refuses new commits; 0 keeps the limit of an existing log, or is 1 GiB.
	MaxBytes int64
	// Create allows creating and resizing the log, for the writer. A reader only opens it.
	Create bool
	// AllowDamaged opens a log that lost commits, or whose configuration is wrong, so that Scan can read the rest.
	AllowDamaged bool
	// Logger receives changes of the connection, never the content of an event; nil is none.
	Logger *slog.Logger
}

// TLSFiles contains the paths of PEM files. Each path may be empty.
type TLSFiles struct {
	// CA is the bundle of trusted CA certificates for the server's certificate. It replaces the
	// system's bundle.
	CA string
	// Cert and Key are the client's certificate and key, if the server requires a certificate.
	Cert, Key string
}

// Connect opens a log on an external NATS. A broken connection is restored automatically. Until
// then, requests wait up to their deadline. Connect fails with ErrConfig, ErrGap, ErrMissing,
// ErrPermission or ErrUnavailable.
func Connect(ctx context.Context, o ExternalOptions) (*Log, error) {
	nc, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	l, err := open(ctx, nc, o.spec(), cmp.Or(o.Logger, slog.New(slog.DiscardHandler)))
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("%w (at %s)", err, RedactURL(o.URL))
	}
	return l, nil
}

// userinfoPattern matches credentials in an address. It also matches them in a list of addresses,
// and in an address without a scheme.
var userinfoPattern = regexp.MustCompile(`(^|,|://)[^,/@]*@`)

// RedactURL returns the addresses of NATS servers without credentials.
func RedactURL(url string) string { return userinfoPattern.ReplaceAllString(url, "$1") }

func (o ExternalOptions) spec() streamSpec {
	return streamSpec{name: StreamName, replicas: o.Replicas, maxBytes: o.MaxBytes, writer: o.Create, allowDamaged: o.AllowDamaged}
}

func dial(ctx context.Context, o ExternalOptions) (*nats.Conn, error) {
	opts := connectionOptions(cmp.Or(o.Logger, slog.New(slog.DiscardHandler)))
	if o.CredsFile != "" {
		opts = append(opts, nats.UserCredentials(o.CredsFile))
	}
	if o.TokenFrom != nil {
		// A server that refuses a token may accept it soon, because a change of the token reaches
		// the client and the server at different times.
		opts = append(opts, nats.TokenHandler(o.TokenFrom), nats.IgnoreAuthErrorAbort())
	} else if o.Token != "" {
		opts = append(opts, nats.Token(o.Token))
	}
	if o.Dialer != nil {
		opts = append(opts, nats.SetCustomDialer(o.Dialer))
	}
	if o.TLS.CA != "" {
		opts = append(opts, nats.RootCAs(o.TLS.CA))
	}
	if o.TLS.Cert != "" || o.TLS.Key != "" {
		opts = append(opts, nats.ClientCert(o.TLS.Cert, o.TLS.Key))
	}
	if deadline, ok := ctx.Deadline(); ok {
		opts = append(opts, nats.Timeout(min(requestTimeout, time.Until(deadline))))
	}
	nc, err := nats.Connect(o.URL, opts...)
	switch {
	case errors.Is(err, nats.ErrAuthorization):
		return nil, fmt.Errorf("connecting to the event log at %s: %w: %w: %w", RedactURL(o.URL), ErrUnavailable, ErrDenied, err)
	case err != nil:
		return nil, fmt.Errorf("connecting to the event log at %s: %w: %w", RedactURL(o.URL), ErrUnavailable, err)
	}
	return nc, nil
}

func connectionOptions(logger *slog.Logger) []nats.Option {
	return []nats.Option{
		nats.Name("scute"),
		nats.Timeout(requestTimeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, time.Second),
		nats.PingInterval(10 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				logger.Warn("event log: connection lost, reconnecting", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			logger.Info("event log: reconnected", "server", nc.ConnectedUrlRedacted())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			logger.Warn("event log: connection", "error", err)
		}),
	}
}
