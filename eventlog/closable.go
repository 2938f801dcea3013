package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// closable says why an epoch cannot be closed, before anything is changed.
func (l *Log) closable(ctx context.Context, e epoch, s jetstream.StreamState) error {
	if err := e.empty(s); err != nil {
		return err
	}
	next := e.spec.next(s.LastSeq + 1).stream()
	asking, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := l.denials.during(asking, "$JS.API.STREAM.INFO."+next, func(ctx context.Context) error {
		_, err := l.js.Stream(ctx, next)
		return err
	})
	switch {
	case err == nil:
		return fmt.Errorf("%w: stream %s exists: it would be the next one; remove it, if it is not of a log that somebody needs", ErrConfig, next)
	case errors.Is(err, ErrPermission):
		return fmt.Errorf("looking for stream %s, which would be the next one: %w", next, err)
	case !errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("%w: looking for stream %s, which would be the next one: %w; does this user have the permissions for it?", ErrUnavailable, next, err)
	}
	if err := l.noneLater(asking, e); err != nil {
		return err
	}
	if err := l.mayCreate(asking, next); err != nil {
		return err
	}
	return l.oneMore(ctx, e.stream.CachedInfo().Config.Replicas)
}

// noneLater says that a stream has the name of an epoch after the next one: once this one is closed, the next one would be taken for lost.
func (l *Log) noneLater(ctx context.Context, e epoch) error {
	later, err := l.epochsAfter(ctx, e.spec.number())
	for _, name := range later {
		return fmt.Errorf("%w: stream %s exists, the name of a later epoch; remove it, if it is not of a log that somebody needs", ErrConfig, name)
	}
	return err
}

// empty says that an epoch has no commits but the one that opens it.
func (e epoch) empty(s jetstream.StreamState) error {
	if s.Msgs == 0 || s.Msgs == 1 && e.spec.number() > 1 {
		return ErrEmptyEpoch
	}
	return nil
}

// oneMore says that the account may not have one more stream, if the user may ask that: when the stream is made it would be too late.
func (l *Log) oneMore(ctx context.Context, replicas int) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	info, err := l.js.AccountInfo(ctx)
	if err != nil {
		return nil // this is a look ahead
	}
	tier := info.Tier
	if of, ok := info.Tiers[fmt.Sprintf("R%d", replicas)]; ok {
		tier = of
	}
	if most := tier.Limits.MaxStreams; most > 0 && tier.Streams >= most {
		return fmt.Errorf("%w: %w: the NATS account has %d streams and may have no more: nothing was changed; raise its limit (max_streams)",
			ErrUnavailable, ErrNoRoom, tier.Streams)
	}
	return nil
}

// mayCreate fails if the server denies the request to create a stream. What it asks for has no name, which every server refuses, so nothing is created.
func (l *Log) mayCreate(ctx context.Context, stream string) error {
	subject := "$JS.API.STREAM.CREATE." + stream
	err := l.denials.during(ctx, subject, func(ctx context.Context) error {
		_, err := l.nc.RequestWithContext(ctx, subject, []byte("{}"))
		return err
	})
	if errors.Is(err, ErrPermission) {
		return fmt.Errorf("the log would continue in stream %s: %w", stream, err)
	}
	if err != nil {
		return fmt.Errorf("%w: asking whether stream %s may be created, in which the log would continue: %w", ErrUnavailable, stream, err)
	}
	return nil
}
