package eventlog

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
)

// What package eventlog_test needs of this one. Its tests cannot be in this package: they import package embedded, which imports
// this one.
const (
	IdentityBytes  = identityBytes
	IdentityKey    = identityKey
	PublishTimeout = publishTimeout
	PullBytes      = pullBytes
	Reserved       = reserved
)

// StreamConfig is how a writer creates a stream.
func StreamConfig(name string) jetstream.StreamConfig { return streamSpec{name: name}.config() }

// JetStream reaches the server of a log beside it.
func (l *Log) JetStream() jetstream.JetStream { return l.js }

// Stream is the stream of a log.
func (l *Log) Stream() jetstream.Stream { return l.stream }

// Of reads another stream of the same server as if it were the log.
func (l *Log) Of(stream jetstream.Stream) *Log {
	info := stream.CachedInfo()
	return &Log{nc: l.nc, js: l.js, logger: discardIfNil(nil), spec: streamSpec{name: info.Config.Name}, stream: stream, created: info.Created}
}

// DeliverFrom is one delivery, which is not tried again.
func (l *Log) DeliverFrom(ctx context.Context, cursor *uint64, until uint64, fn func(Record) error) error {
	r := &reading{cursor: *cursor, until: until, fn: fn}
	err := l.deliverFrom(ctx, r)
	*cursor = r.cursor
	return err
}
