package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/net/netutil"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ui/access"
	"scute.dev/cmd/ui/page"
	"scute.dev/cmd/ui/signin"
	"scute.dev/cmd/ui/web"
	"scute.dev/eventlog"
	"scute.dev/internal/timespan"
)

// UIOptions say where and to whom the pages of the log are served.
type UIOptions struct {
	// Address that the pages are served at; "" is none.
	Address string
	// Cert and Key are the files of the server's certificate; without them there is no TLS.
	Cert, Key string
	// PlainHTTP permits an address without TLS that is not a loopback one: behind what ends TLS.
	PlainHTTP bool
	// Hosts are the names by which browsers ask for the pages.
	Hosts []string
	// Audiences that tokens must be for one of; those of the API server if empty.
	Audiences []string
	// Session is how long a user stays signed in.
	Session time.Duration
	// Dir is the folder of the copy of the log's commits, and MaxBytes how large it may become.
	Dir      string
	MaxBytes int64
}

func newUIOptions() UIOptions { return UIOptions{Session: 12 * time.Hour, MaxBytes: 256 << 20} }

func (o *UIOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Address, "ui-address", o.Address, "address of the pages of the log, for users with a bearer token of this cluster, for example 127.0.0.1:8082; none if empty")
	f.StringVar(&o.Cert, "ui-tls-cert", o.Cert, "file with the certificate of the pages; a new one is used without a restart")
	f.StringVar(&o.Key, "ui-tls-key", o.Key, "file with the key of that certificate")
	f.BoolVar(&o.PlainHTTP, "ui-plain-http", o.PlainHTTP, "permit --ui-address to be reached without TLS: only behind a proxy that ends TLS, since tokens are sent")
	f.StringSliceVar(&o.Hosts, "ui-hosts", o.Hosts, "names by which browsers ask for the pages, with or without a port; with --ui-plain-http needed, with TLS any if empty")
	f.StringSliceVar(&o.Audiences, "ui-audiences", o.Audiences, "audiences that a token must be for one of; those of the API server if empty")
	f.DurationVar(&o.Session, "ui-session", o.Session, "how long a user stays signed in at most")
	f.StringVar(&o.Dir, "ui-dir", o.Dir, "folder of the copy of the log that the pages read, made again at each start; that of temporary files if empty")
	f.Int64Var(&o.MaxBytes, "ui-max-bytes", o.MaxBytes, "size of that copy at which the pages are not shown any more; what they need of memory is up to 1.5 times as much")
}

func (o *UIOptions) validate() error {
	if o.Address == "" {
		if o.Cert != "" || o.Key != "" || o.PlainHTTP || len(o.Hosts) > 0 || len(o.Audiences) > 0 || o.Dir != "" {
			return errors.New("--ui-tls-cert, --ui-tls-key, --ui-plain-http, --ui-hosts, --ui-audiences and --ui-dir need --ui-address")
		}
		return nil
	}
	_, port, err := net.SplitHostPort(o.Address)
	number, wrong := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || wrong != nil || number == 0:
		return fmt.Errorf("--ui-address is %q: it must be HOST:PORT, for example 127.0.0.1:8082", o.Address)
	case (o.Cert == "") != (o.Key == ""):
		return errors.New("--ui-tls-cert and --ui-tls-key go together")
	case o.Cert != "" && o.PlainHTTP:
		return errors.New("--ui-plain-http and --ui-tls-cert exclude each other")
	case o.Cert == "" && !o.PlainHTTP && !o.loopback():
		return fmt.Errorf("--ui-address is %q, which can be reached over the network: give --ui-tls-cert and --ui-tls-key, or --ui-plain-http behind a proxy that ends TLS, or an address of 127.0.0.1", o.Address)
	case o.PlainHTTP && len(o.Hosts) == 0:
		return errors.New("--ui-plain-http needs --ui-hosts: without TLS nothing else says for whom a browser takes the daemon")
	case slices.Contains(o.Hosts, "") || slices.Contains(o.Audiences, ""):
		return errors.New("--ui-hosts and --ui-audiences must have no empty entry")
	case o.Session < time.Minute:
		return fmt.Errorf("--ui-session is %s: it must be a minute or more", timespan.Text(o.Session))
	case o.MaxBytes < 1:
		return fmt.Errorf("--ui-max-bytes is %d: it must be 1 or more", o.MaxBytes)
	}
	return nil
}

// loopback says that the address can be reached from the same host or pod alone.
func (o *UIOptions) loopback() bool {
	host, _, _ := net.SplitHostPort(o.Address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// hosts are the names that are served. At a loopback address, where a port-forward ends, they are those of the user's own machine.
func (o *UIOptions) hosts() []string {
	if o.Cert == "" && !o.PlainHTTP {
		return append([]string{"localhost", "127.0.0.1", "::1"}, o.Hosts...)
	}
	return o.Hosts
}

const (
	// uiIdle is how long a user stays signed in without a request; an open page makes some.
	uiIdle = time.Hour
	// uiKept is how long an answer of the API server about a user holds. With the time between two looks at an open page, and what the API
	// server itself keeps of a token, it is less than a minute.
	uiKept = 30 * time.Second
	// uiConnections bounds the connections of browsers.
	uiConnections = 1024
	// uiHeader bounds the header of a request: a token is up to 16 KiB.
	uiHeader = 32 << 10
	uiWait   = 2 * time.Minute
	// uiShutdown is how long open pages may take to end.
	uiShutdown = 2 * time.Second
)

// showLog has this process serve the pages of the log. What goes wrong with reading the log for them is their problem alone.
func (d *daemon) showLog(o UIOptions, config *rest.Config, log *eventlog.Log) error {
	config = rest.AddUserAgent(rest.CopyConfig(config), "ui")
	config.QPS = -1 // the reviews in flight are bounded, and the API server shares itself out
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("preparing the pages: %w", err)
	}
	copied, err := newCopied(o, log, d.logger)
	if err != nil {
		return fmt.Errorf("preparing the pages: --ui-dir: %w", err)
	}
	flags := connect.New()
	if in, err := installedIn(); err == nil {
		flags.ScuteNamespace = in
	}
	site, err := page.New(copied.feed, &kit.Kit{Env: cli.System("scutectl", ""), Flags: flags}, "the log of the daemon in namespace "+flags.ScuteNamespace)
	if err != nil {
		return fmt.Errorf("preparing the pages: %w", err)
	}
	handler, err := (&web.Shared{
		Site: site, Feed: copied.feed, Hosts: o.hosts(), Audiences: o.Audiences, TLS: o.Cert != "", Proxied: o.PlainHTTP, Unready: copied.unready, Logger: d.logger,
		Sessions: &signin.Sessions{Life: o.Session, Idle: uiIdle},
		Reviewer: &access.Reviewer{
			Tokens: clients.AuthenticationV1().TokenReviews(), Access: clients.AuthorizationV1().SubjectAccessReviews(), Audiences: o.Audiences, Keep: uiKept,
		},
	}).Handler()
	if err != nil {
		return fmt.Errorf("preparing the pages: %w", err)
	}
	return errors.Join(
		d.manager.Add(always(func(ctx context.Context) error {
			copied.follow(ctx)
			return nil
		})),
		d.manager.Add(always(func(ctx context.Context) error {
			o.keepServing(ctx, handler, d.logger)
			return nil
		})),
	)
}

// keepServing serves the pages until ctx ends. A certificate that cannot be read, or a port that is taken, stops nothing else that the daemon does:
// it is tried again.
func (o *UIOptions) keepServing(ctx context.Context, handler http.Handler, logger *slog.Logger) {
	for ctx.Err() == nil {
		err := o.serve(ctx, handler, logger)
		if ctx.Err() != nil {
			return
		}
		logger.Error("the pages are not served; it is tried again", "error", err, "in", uiRetry)
		select {
		case <-ctx.Done():
		case <-time.After(uiRetry):
		}
	}
}

// serve serves the pages until ctx ends.
func (o *UIOptions) serve(ctx context.Context, handler http.Handler, logger *slog.Logger) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return fmt.Errorf("listening for browsers: --ui-address: %w", err)
	}
	listener = netutil.LimitListener(listener, uiConnections)
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: uiWait, MaxHeaderBytes: uiHeader,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	if o.Cert != "" {
		watcher, err := certwatcher.New(o.Cert, o.Key)
		if err != nil {
			return errors.Join(fmt.Errorf("reading the certificate of the pages: --ui-tls-cert, --ui-tls-key: %w", err), listener.Close())
		}
		go func() {
			if err := watcher.Start(ctx); err != nil {
				logger.Error("a new certificate of the pages is not used without a restart", "error", err)
			}
		}()
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: watcher.GetCertificate}
	}
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), uiShutdown)
		defer cancel()
		_ = server.Shutdown(ending)
	})
	defer stop()
	logger.Info("the pages of the log are served", "address", o.Address, "tls", o.Cert != "")
	if o.Cert != "" {
		err = server.ServeTLS(listener, "", "")
	} else {
		err = server.Serve(listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving the pages of the log: %w", err)
}
