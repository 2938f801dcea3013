package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
)

// startTimeout bounds the server's start, which reads the indexes of the whole log.
const startTimeout = 60 * time.Second

func startServer(ctx context.Context, o Options, logger *slog.Logger) (*server.Server, error) {
	opts := &server.Options{
		ServerName: "scute",
		JetStream:  true,
		StoreDir:   o.Dir,
		SyncAlways: !o.unsynced,
		DontListen: o.Listen == "",
		NoSigs:     true,

		// The server refuses a stream with a higher limit than this. The value is so high that only the
		// size of the disk counts, which the operator chooses.
		JetStreamMaxStore:  1 << 50,
		JetStreamMaxMemory: 1 << 30,
	}
	if o.Access != nil {
		opts.CustomClientAuthentication = o.Access
	} else {
		opts.Authorization = o.Token
	}
	if o.Listen != "" {
		host, port, err := net.SplitHostPort(o.Listen)
		if err != nil {
			return nil, fmt.Errorf("listen address %q: %w", o.Listen, err)
		}
		opts.Host = host
		if opts.Port, err = strconv.Atoi(port); err != nil {
			return nil, fmt.Errorf("listen address %q: the port is not a number", o.Listen)
		}
		if opts.Port == 0 {
			opts.Port = server.RANDOM_PORT
		}
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	fatal := make(chan string, 1)
	srv.SetLoggerV2(serverLogger{logger, fatal}, false, false, false)
	srv.Start()
	if err := waitUntilReady(ctx, srv, fatal); err != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
		return nil, err
	}
	return srv, nil
}

func waitUntilReady(ctx context.Context, srv *server.Server, fatal <-chan string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !srv.ReadyForConnections(100*time.Millisecond) || !srv.JetStreamEnabled() {
		select {
		case why := <-fatal:
			return fmt.Errorf("%w: the server did not start: %s", eventlog.ErrUnavailable, why)
		case <-ctx.Done():
			return fmt.Errorf("%w: the server was not ready in time; check its log lines: %w", eventlog.ErrUnavailable, ctx.Err())
		default:
		}
	}
	return nil
}

// serverLogger forwards the server's messages to a logger. It discards traces, because they contain
// event data.
type serverLogger struct {
	to    *slog.Logger
	fatal chan<- string // receives the first reason why the server cannot continue
}

func (l serverLogger) Noticef(f string, v ...any) { l.to.Debug("nats: " + fmt.Sprintf(f, v...)) }
func (l serverLogger) Warnf(f string, v ...any)   { l.to.Warn("nats: " + fmt.Sprintf(f, v...)) }
func (l serverLogger) Errorf(f string, v ...any)  { l.to.Error("nats: " + fmt.Sprintf(f, v...)) }
func (l serverLogger) Debugf(string, ...any)      {}
func (l serverLogger) Tracef(string, ...any)      {}

func (l serverLogger) Fatalf(f string, v ...any) {
	why := fmt.Sprintf(f, v...)
	l.to.Error("nats: " + why)
	select {
	case l.fatal <- why:
	default:
	}
}
