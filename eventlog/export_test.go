package eventlog

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"
)

// These constants are for package eventlog_test, which is separate because its tests import package embedded, and
// embedded imports eventlog.
const (
	IdentityBytes  = identityBytes
	IdentityKey    = identityKey
	PublishTimeout = publishTimeout
	PullBytes      = pullBytes
	ReservedShare  = reservedShare
)

// StreamConfig returns the configuration of a stream that a writer creates.
func StreamConfig(name string) jetstream.StreamConfig { return streamSpec{name: name}.config() }

// ConnectTo opens a stream of another name.
func ConnectTo(ctx context.Context, o ExternalOptions, name string) (*Log, error) {
	nc, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	spec := o.spec()
	spec.name = name
	return open(ctx, nc, spec, slog.New(slog.DiscardHandler))
}

// JetStream returns the JetStream client of a log.
func (l *Log) JetStream() jetstream.JetStream { return l.js }

// Stream returns the stream of a log.
func (l *Log) Stream() jetstream.Stream { return l.stream }

// Of returns a log that reads another stream of the same server.
func (l *Log) Of(stream jetstream.Stream) *Log {
	info := stream.CachedInfo()
	return &Log{nc: l.nc, js: l.js, logger: slog.New(slog.DiscardHandler), spec: streamSpec{name: info.Config.Name}, stream: stream, created: info.Created}
}

// DeliverFrom delivers once, without retries.
func (l *Log) DeliverFrom(ctx context.Context, cursor *uint64, until uint64, fn func(Record) error) error {
	r := &pass{cursor: *cursor, until: until, fn: fn}
	err := l.deliverFrom(ctx, r)
	*cursor = r.cursor
	return err
}
