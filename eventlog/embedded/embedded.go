package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"scute.dev/eventlog"
)

// Options configure an embedded log.
type Options struct {
	// Dir is the log's folder, which is created if it does not exist. Only one process at a time may have it open.
	Dir string
	// Listen is the address where other processes can reach the log, for example "127.0.0.1:4222";
	// "" is none. Without an Access or a Token there is no authentication, so untrusted clients
	// must not reach the address.
	Listen string
	// Token is the token that other processes must present; "" requires none. A client with the
	// token may do everything.
	Token string
	// Access authenticates and authorizes clients instead of Token; nil uses Token.
	Access *Access
	// MaxBytes is the size at which the log refuses new commits; 0 keeps the limit of an existing log, or is 1 GiB.
	MaxBytes int64
	// AllowDamaged opens a log that lost commits, or whose configuration is wrong, so that Scan can
	// read the rest. Use it only on a copy of the folder (CopyFolder), because the server repairs the
	// files that it opens, and deletes what it cannot read.
	AllowDamaged bool
	// AllowMoved also opens a log that was moved to another server, so that it can be moved again.
	AllowMoved bool
	// Logger receives the server's warnings and errors, never the content of an event; nil is none.
	Logger *slog.Logger

	// unsynced disables syncing. The caller must sync the folder.
	unsynced bool
}

// Open opens the log in a folder with a NATS server inside this process. Every acknowledged commit
// has been synced to disk. It fails with ErrLocked, ErrMoved, ErrConfig, ErrGap, ErrMissing or
// ErrUnavailable of package eventlog.
func Open(ctx context.Context, o Options) (*eventlog.Log, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	f, err := acquireFolder(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the embedded event log: %w", err)
	}
	if !o.AllowMoved {
		if err := checkNotMoved(o.Dir); err != nil {
			return nil, errors.Join(fmt.Errorf("opening the embedded event log: %w", err), f.Close())
		}
	}
	l, err := f.open(ctx, o)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := f.verify(ctx, l, o); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the embedded event log in %s: %w", o.Dir, err), l.Close())
	}
	return l, nil
}

func (f *folder) open(ctx context.Context, o Options) (*eventlog.Log, error) {
	if err := tidyStream(f.dir); err != nil {
		return nil, fmt.Errorf("opening the embedded event log in %s: %w", f.dir, err)
	}
	if o.Access != nil {
		o.Token = o.Access.newOwnToken()
	}
	srv, err := startServer(ctx, o, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("opening the embedded event log in %s: %w", f.dir, err)
	}
	f.server = srv
	if o.Access != nil {
		if f.gate, err = openGate(srv, o.Token, o.Access.Accept, o.Logger); err == nil {
			err = o.Access.setServer(srv)
		}
		if err != nil {
			return nil, fmt.Errorf("opening the embedded event log in %s: %w", f.dir, err)
		}
	}
	l, err := eventlog.OpenHosted(ctx, f, eventlog.HostedOptions{
		Token: o.Token, MaxBytes: o.MaxBytes, AllowDamaged: o.AllowDamaged, Acknowledged: f.watermark.acknowledged(), Logger: o.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("%w (folder %s)", err, f.dir)
	}
	return l, nil
}

// verify compares the log with the watermark and the ID in the folder. It then records the identity
// of the log's files.
func (f *folder) verify(ctx context.Context, l *eventlog.Log, o Options) error {
	if !o.AllowDamaged {
		head, err := l.Head(ctx)
		if err != nil {
			return err
		}
		if err := f.watermark.checkHead(head); err != nil {
			return err
		}
		if err := recordID(f.dir, l.ID(), head); err != nil {
			return err
		}
	}
	return f.recordFiles()
}
