package eventlog

import (
	"context"
	"time"

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
func (l *Log) Stream() jetstream.Stream { return l.current().stream }

// Of reads another stream of the same server as if it were the log.
func (l *Log) Of(stream jetstream.Stream) *Log {
	of := &Log{nc: l.nc, js: l.js, logger: discardIfNil(nil)}
	of.epochs.Store(&[]epoch{newEpoch(streamSpec{name: stream.CachedInfo().Config.Name}, stream)})
	return of
}

// OnClosing has a function called after each step of a closing.
func (l *Log) OnClosing(reach func(step string)) { l.reach = reach }

// SettleAfter says after how long a server counts as having written what it stored.
func (l *Log) SettleAfter(d time.Duration) { l.settled = d }

// DeliverFrom is one delivery, which is not tried again.
func (l *Log) DeliverFrom(ctx context.Context, cursor *uint64, until uint64, fn func(Record) error) error {
	r := &reading{cursor: *cursor, until: until, fn: fn}
	err := l.deliverFrom(ctx, l.current(), r, until)
	*cursor = r.cursor
	return err
}

// In is the commit for one epoch alone.
func (c Commit) In(epoch int) Commit { c.epoch = epoch; return c }

// Opening is the rest of the opening of a log whose beginning was found now.
func (l *Log) Opening() func(context.Context) error {
	begin := l.all()[:1:1]
	return func(ctx context.Context) error {
		l.epochs.Store(&begin)
		return l.continued(ctx)
	}
}

// Listing is what is kept of dropped epochs, by a listing of the streams that is made now.
func (l *Log) Listing(ctx context.Context) (kept func(context.Context) (through int, ok bool, err error), err error) {
	listed, err := l.list(ctx)
	return func(ctx context.Context) (int, bool, error) {
		e, ok, err := l.findKept(ctx, &listed)
		return e.spec.epoch, ok, err
	}, err
}
