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

// Host holds an embedded log in this process: the server and its folder. Package embedded has the one there is.
type Host interface {
	nats.InProcessConnProvider
	// URL is the address for other processes, "" without a listener.
	URL() string
	// Acknowledged records the sequence of an acknowledged commit.
	Acknowledged(seq uint64)
	// Frozen fails with ErrFrozen when the server takes no commit any more because a write failed.
	Frozen() error
	// Thawed returns nil if the disk takes writes.
	Thawed() error
	// Intact fails with ErrMissing when the files of the log were removed or replaced.
	Intact() error
	// Close stops the server and frees the folder.
	Close() error
}

// HostedOptions configure OpenHosted.
type HostedOptions struct {
	// Stream defaults to DefaultStream.
	Stream string
	// Token is the token that the host requires; "" is none.
	Token string
	// MaxBytes is the size at which the log refuses new commits; 0 leaves an existing log's limit, or 1 GiB.
	MaxBytes int64
	// Examine opens the remains of a log that lost commits, or is configured otherwise than it must be, to Scan it.
	Examine bool
	// Acknowledged is a sequence that is known to have been acknowledged: if the stream that has it is not there, it was lost. 0 is none.
	Acknowledged uint64
	// Logger receives changes of the connection, never the content of an event; nil is none.
	Logger *slog.Logger
}

// HostTimeout bounds a connection to a server in this process: nothing but a machine without a free processor delays it.
const HostTimeout = 30 * time.Second

// OpenHosted opens the log that a host holds; closing it closes the host. Programs call embedded.Open. It fails with ErrConfig,
// ErrGap, ErrMissing or ErrUnavailable, and leaves the host open.
func OpenHosted(ctx context.Context, h Host, o HostedOptions) (*Log, error) {
	logger := discardIfNil(o.Logger)
	// Answers to this process have subjects that no user of a listener may subscribe to.
	options := append(connectionOptions(logger), nats.InProcessServer(h), nats.Timeout(HostTimeout), nats.CustomInboxPrefix("_SCUTE"))
	if o.Token != "" {
		options = append(options, nats.Token(o.Token))
	}
	nc, err := nats.Connect("", options...)
	if err != nil {
		return nil, fmt.Errorf("opening the event log: %w", err)
	}
	spec := streamSpec{
		name: cmp.Or(o.Stream, DefaultStream), maxBytes: o.MaxBytes, writer: !o.Examine, examine: o.Examine, acknowledged: o.Acknowledged,
	}
	l, err := open(ctx, nc, spec, logger)
	if err != nil {
		nc.Close()
		return nil, err
	}
	l.host = h
	return l, nil
}

// URL returns the address of an embedded log's listener, "" without one.
func (l *Log) URL() string {
	if l.host == nil {
		return ""
	}
	return l.host.URL()
}

// Thawed returns nil if the disk of a frozen embedded log takes writes again, so that opening the log again helps. It writes a file
// and removes it.
func (l *Log) Thawed() error {
	if l.host == nil {
		return errors.New("the log is not embedded: whether its disk takes writes cannot be seen from here")
	}
	return l.host.Thawed()
}

// frozen returns ErrFrozen if the embedded server refuses every write since one failed.
func (l *Log) frozen() error {
	if l.host == nil {
		return nil
	}
	return l.host.Frozen()
}

// intact returns ErrMissing if the files of an embedded log are not those that were opened.
func (l *Log) intact() error {
	if l.host == nil {
		return nil
	}
	return l.host.Intact()
}

// acknowledged records the sequence at the host of an embedded log.
func (l *Log) acknowledged(seq uint64) {
	if l.host != nil {
		l.host.Acknowledged(seq)
	}
}
