package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
)

// Host runs an embedded log in this process: it has the NATS server and the log's folder. Package
// embedded implements it.
type Host interface {
	nats.InProcessConnProvider
	// URL returns the address of the log for other processes, or "" without a listener.
	URL() string
	// Acknowledge records the sequence of an acknowledged commit.
	Acknowledge(seq uint64)
	// CheckFrozen returns ErrFrozen if the server refuses all commits because a write failed.
	CheckFrozen() error
	// CheckWritable returns nil if the disk accepts writes.
	CheckWritable() error
	// CheckIntact returns ErrMissing if the files of the log were removed or replaced.
	CheckIntact() error
	// Close stops the server and releases the folder.
	Close() error
}

// HostedOptions configure OpenHosted.
type HostedOptions struct {
	// Token is the token that the host requires; "" is none.
	Token string
	// MaxBytes is the size at which the log refuses new commits; 0 keeps the limit of an existing log, or is 1 GiB.
	MaxBytes int64
	// AllowDamaged opens a log that lost commits, or whose configuration is wrong, so that Scan can read the rest.
	AllowDamaged bool
	// Acknowledged is the highest sequence known to be acknowledged; 0 means none. If it is set and
	// the stream does not exist, the stream was lost.
	Acknowledged uint64
	// Logger receives changes of the connection, never the content of an event; nil is none.
	Logger *slog.Logger
}

// HostTimeout bounds a connection to a server in this process. It is long because a busy machine
// may delay the connection.
const HostTimeout = 30 * time.Second

// OpenHosted opens the log of a host. Closing the log closes the host. Programs call embedded.Open.
// OpenHosted fails with ErrConfig, ErrGap, ErrMissing or ErrUnavailable; the host then stays open.
func OpenHosted(ctx context.Context, h Host, o HostedOptions) (*Log, error) {
	logger := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	// The inbox has a prefix to which no user of a listener may subscribe.
	options := append(connectionOptions(logger), nats.InProcessServer(h), nats.Timeout(HostTimeout), nats.CustomInboxPrefix("_SCUTE"))
	if o.Token != "" {
		options = append(options, nats.Token(o.Token))
	}
	nc, err := nats.Connect("", options...)
	if err != nil {
		return nil, fmt.Errorf("opening the event log: %w", err)
	}
	spec := streamSpec{name: StreamName, maxBytes: o.MaxBytes, writer: !o.AllowDamaged, allowDamaged: o.AllowDamaged, acknowledged: o.Acknowledged}
	l, err := open(ctx, nc, spec, logger)
	if err != nil {
		nc.Close()
		return nil, err
	}
	l.host = h
	return l, nil
}

// URL returns the address of an embedded log's listener, or "" without a listener.
func (l *Log) URL() string {
	if l.host == nil {
		return ""
	}
	return l.host.URL()
}

// CheckWritable returns nil if the disk of a frozen embedded log accepts writes again, so that it
// helps to open the log again. It writes a file and removes it.
func (l *Log) CheckWritable() error {
	if l.host == nil {
		return errors.New("the log is not embedded: its disk cannot be checked")
	}
	return l.host.CheckWritable()
}

func (l *Log) checkFrozen() error {
	if l.host == nil {
		return nil
	}
	return l.host.CheckFrozen()
}

func (l *Log) checkIntact() error {
	if l.host == nil {
		return nil
	}
	return l.host.CheckIntact()
}

func (l *Log) acknowledge(seq uint64) {
	if l.host != nil {
		l.host.Acknowledge(seq)
	}
}
