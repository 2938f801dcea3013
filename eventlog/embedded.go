package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// startTimeout bounds the server's start, which reads the indexes of the whole log.
const startTimeout = 60 * time.Second

// EmbeddedOptions say where an embedded log lives.
type EmbeddedOptions struct {
	// Dir is the log's folder; it is made if need be, and one process at a time may have it open.
	Dir string
	// Listen is the address where other processes may reach the log, for example "127.0.0.1:4222"; "" is none.
	// Without a Token there is no authentication: give no address that strangers can reach.
	Listen string
	// Token is what other processes must know to reach the log; "" is nothing.
	Token string
	// Stream defaults to DefaultStream.
	Stream string
	// MaxBytes is the size at which the log refuses new commits; 0 leaves an existing log's limit, or 1 GiB.
	MaxBytes int64
	// Examine opens the remains of a log that lost commits, or is configured otherwise than it must be, to Scan it. The
	// server repairs what it opens, and so removes what cannot be read: open a copy (CopyFolder).
	Examine bool
	// Logger receives the server's warnings and errors, never the content of an event; nil is none.
	Logger *slog.Logger
}

// OpenEmbedded opens the log in a folder with a NATS server inside this process. Every acknowledged commit has been
// synced to disk. It fails with ErrLocked, ErrConfig, ErrGap, ErrMissing or ErrUnavailable.
func OpenEmbedded(ctx context.Context, o EmbeddedOptions) (_ *Log, err error) {
	if o.Dir == "" {
		return nil, errors.New("opening the embedded event log: no folder given")
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the embedded event log: %w", err)
	}
	var undo []func() error
	defer func() {
		for i := len(undo) - 1; err != nil && i >= 0; i-- {
			err = errors.Join(err, undo[i]())
		}
	}()
	lock, err := lockFolder(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the embedded event log: %w", err)
	}
	undo = append(undo, func() error { return unlock(lock) })
	mark, err := openWatermark(filepath.Join(o.Dir, watermarkFile))
	if err != nil {
		return nil, fmt.Errorf("opening the embedded event log in %s: %w", o.Dir, err)
	}
	undo = append(undo, mark.close)

	name := cmp.Or(o.Stream, DefaultStream)
	if err := discardHalfMade(o.Dir, name); err != nil {
		return nil, fmt.Errorf("opening the embedded event log in %s: %w", o.Dir, err)
	}
	logger := discardIfNil(o.Logger)
	srv, err := startServer(ctx, o, logger)
	if err != nil {
		return nil, fmt.Errorf("opening the embedded event log in %s: %w", o.Dir, err)
	}
	undo = append(undo, func() error { srv.Shutdown(); srv.WaitForShutdown(); return nil })
	options := append(connectionOptions(logger), nats.InProcessServer(srv))
	if o.Token != "" {
		options = append(options, nats.Token(o.Token))
	}
	nc, err := nats.Connect("", options...)
	if err != nil {
		return nil, fmt.Errorf("opening the embedded event log in %s: %w", o.Dir, err)
	}
	undo = append(undo, func() error { nc.Close(); return nil })

	spec := streamSpec{name: name, maxBytes: o.MaxBytes, writer: !o.Examine, examine: o.Examine, existed: mark.acknowledged() > 0}
	l, err := open(ctx, nc, spec, logger)
	if err != nil {
		return nil, fmt.Errorf("%w (folder %s)", err, o.Dir)
	}
	if err := mark.covered(l.stream.CachedInfo().State.LastSeq); err != nil && !o.Examine {
		return nil, fmt.Errorf("opening the embedded event log in %s: %w", o.Dir, err)
	}
	where, err := findPlace(o.Dir, name)
	if err != nil {
		return nil, fmt.Errorf("opening the embedded event log in %s: %w", o.Dir, err)
	}
	l.server, l.dir, l.lock, l.mark, l.place = srv, o.Dir, lock, mark, where
	return l, nil
}

// startServer starts the NATS server of the log and waits until it answers.
func startServer(ctx context.Context, o EmbeddedOptions, logger *slog.Logger) (*server.Server, error) {
	opts := &server.Options{
		ServerName: "scute",
		JetStream:  true,
		StoreDir:   o.Dir,
		SyncAlways: true,
		DontListen: o.Listen == "",
		NoSigs:     true,

		Authorization: o.Token,
		// The server refuses a stream whose limit is above this; the disk is the operator's to size.
		JetStreamMaxStore:  1 << 50,
		JetStreamMaxMemory: 1 << 30,
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
	if err := untilReady(ctx, srv, fatal); err != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
		return nil, err
	}
	return srv, nil
}

// untilReady waits until the server answers, or says why it never will.
func untilReady(ctx context.Context, srv *server.Server, fatal <-chan string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !srv.ReadyForConnections(100*time.Millisecond) || !srv.JetStreamEnabled() {
		select {
		case why := <-fatal:
			return fmt.Errorf("%w: the server did not start: %s", ErrUnavailable, why)
		case <-ctx.Done():
			return fmt.Errorf("%w: the server was not ready in time, see its log lines: %w", ErrUnavailable, ctx.Err())
		default:
		}
	}
	return nil
}

// serverLogger hands the server's lines to slog. Its traces, which would hold event data, are off.
type serverLogger struct {
	to    *slog.Logger
	fatal chan<- string // the first reason why the server cannot continue
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
