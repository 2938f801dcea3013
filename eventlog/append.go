package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// appendTimeout bounds an append whose context has no nearer deadline.
	appendTimeout = 15 * time.Second
	// publishTimeout bounds one attempt. A slow attempt does no harm: the next one finds out what became of it.
	publishTimeout = 2 * time.Second
)

// Codes of JetStream's answers to a publish (errors.json of nats-server).
const (
	codeResources         jetstream.ErrorCode = 10023 // insufficient resources
	codeAccountLimit      jetstream.ErrorCode = 10002 // resource limits exceeded for account
	codeStorage           jetstream.ErrorCode = 10047 // insufficient storage resources: no room for a stream of this limit
	codeStreamBytes       jetstream.ErrorCode = 10122 // the account limits the size of each stream
	codeTooLarge          jetstream.ErrorCode = 10054 // message size exceeds maximum allowed
	codeReplicas          jetstream.ErrorCode = 10074 // a server that is not part of a cluster keeps one replica
	codeStoreFailed       jetstream.ErrorCode = 10077 // the store refused: the stream is full
	codeWrongLast         jetstream.ErrorCode = 10071 // the subject's last sequence is another
	codeWrongLastInFlight jetstream.ErrorCode = 10164 // the same, perhaps because of a write in flight (replicated)
	codeDuplicateInFlight jetstream.ErrorCode = 10158 // the same message id is in flight (replicated)
	codeDuplicateInBatch  jetstream.ErrorCode = 10201 // the same message id, told by an atomic batch
)

// errInFlight: a write on the subject has started, and its result is not known yet.
var errInFlight error = &unsettledError{errors.New("a write on the aggregate is in flight")}

// Append stores a commit, if the aggregate is still as it was when the decision was made. It returns
//
//	a receipt                     stored, or stored by an earlier try of the same commit
//	ErrConflict                   someone else was first: read the aggregate and decide again
//	ErrUnavailable                not known to be stored before the deadline: append the same commit again, or read
//	ErrPermission                 not known to be stored: the server denies its user the request
//	ErrFull                       refused, the log is at its limit, or so near to it that it begins nothing new
//	ErrFrozen                     not known to be stored: a write to the disk failed, and the log takes none until it is opened again
//	ErrTooLarge                   refused, the commit does not fit into one message: split it
//	ErrMissing, ErrConfig         the log is not what it was, or its files were removed under it
//
// The result is never unknown: after a timeout Append publishes the same commit again (the expected sequence admits it
// only once) and reads the aggregate to find out whose commit was stored. Without a deadline in ctx it takes up to 15
// seconds.
func (l *Log) Append(ctx context.Context, c Commit) (Receipt, error) {
	m, err := c.encode()
	if err != nil {
		return Receipt{}, fmt.Errorf("appending: %w", err)
	}
	if size, limit := int64(m.Size()-len(m.Subject)), l.nc.MaxPayload(); size > limit {
		return Receipt{}, fmt.Errorf("appending commit %s on %s: %w: it takes %d bytes with its headers, the server's limit is %d; split it into several commits",
			c.ID, c.Aggregate, ErrTooLarge, size, limit)
	}
	r, err := l.begin(ctx, c, m)
	if unsettled(err) && !errors.Is(err, ErrPermission) {
		r, err = l.retry(ctx, c, m)
	}
	if unsettled(err) && !errors.Is(err, ErrFrozen) {
		err = fmt.Errorf("%w: it is not known to be stored; append the same commit again: %w", ErrUnavailable, err)
	}
	if err == nil {
		err = l.intact()
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("appending commit %s on %s: %w", c.ID, c.Aggregate, err)
	}
	l.acknowledged(r.Seq)
	return r, nil
}

// begin makes the first attempt, if the log admits the commit. It finds a commit that was stored before in any case.
func (l *Log) begin(ctx context.Context, c Commit, m *nats.Msg) (Receipt, error) {
	if err := l.admit(ctx, c); err != nil {
		return l.settle(ctx, c, err)
	}
	return l.try(ctx, c, m)
}

// retry tries until it is known what became of the commit.
func (l *Log) retry(ctx context.Context, c Commit, m *nats.Msg) (r Receipt, err error) {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	err = backoff.Retry(func() error {
		var last error
		switch r, last = l.try(ctx, c, m); {
		case unsettled(last) && !errors.Is(last, ErrFrozen) && !errors.Is(last, ErrPermission) && ctx.Err() == nil:
			return last
		default:
			// At the deadline, too: the last try's error says more than the context's.
			return backoff.Permanent(last)
		}
	}, backoff.WithContext(newBackOff(0), ctx))
	return r, err
}

// try publishes once and settles what the answer means.
func (l *Log) try(ctx context.Context, c Commit, m *nats.Msg) (Receipt, error) {
	pctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	var ack *jetstream.PubAck
	err := l.denials.during(pctx, m.Subject, func(ctx context.Context) (err error) {
		ack, err = l.js.PublishMsg(ctx, m)
		return err
	})
	var refused *jetstream.APIError
	switch {
	case err == nil && ack.Stream != l.spec.name:
		return Receipt{}, fmt.Errorf("%w: stream %s took the commit instead of %s", ErrConfig, ack.Stream, l.spec.name)
	case err == nil && !ack.Duplicate:
		return Receipt{Seq: ack.Sequence}, nil
	case err == nil:
		return l.settle(ctx, c, errInFlight)
	case errors.As(err, &refused):
		return l.refused(ctx, c, refused)
	case errors.Is(err, ErrPermission):
		// An earlier try may have been stored, or the denied request was another one on this subject.
		return l.settle(ctx, c, err)
	case errors.Is(err, nats.ErrConnectionClosed):
		return Receipt{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		// There is no responder on the subject: the stream was deleted, or has no leader at the moment.
		return Receipt{}, l.unheard(ctx, err)
	default:
		if frozen := l.frozen(); frozen != nil {
			err = fmt.Errorf("%w: %w", frozen, err)
		}
		return Receipt{}, &unsettledError{err}
	}
}

// unheard returns the reason for which no stream takes a commit.
func (l *Log) unheard(ctx context.Context, why error) error {
	_, err := l.state(ctx)
	if errors.Is(err, ErrMissing) || errors.Is(err, ErrGap) || errors.Is(err, ErrConfig) {
		return err
	}
	return &unsettledError{errors.Join(why, err)}
}

// refused handles an answer of JetStream that is not an acknowledgement.
func (l *Log) refused(ctx context.Context, c Commit, refused *jetstream.APIError) (Receipt, error) {
	switch refused.ErrorCode {
	case codeWrongLast, codeWrongLastInFlight, codeDuplicateInFlight, codeDuplicateInBatch:
		return l.settle(ctx, c, errInFlight)
	case codeStoreFailed, codeResources, codeAccountLimit:
		// An earlier try may be what filled the log.
		return l.settle(ctx, c, fmt.Errorf("%w: %w; raise its limit, nothing was forgotten", ErrFull, refused))
	case codeTooLarge:
		return Receipt{}, fmt.Errorf("%w: %w", ErrTooLarge, refused)
	default:
		if refused.Code == 403 { // by the listener of an embedded log
			return Receipt{}, fmt.Errorf("%w: %w", ErrPermission, refused)
		}
		return Receipt{}, fmt.Errorf("%w: %w", ErrUnavailable, refused)
	}
}

// settle reads whose commit follows the expected one: only that place could be ours. If the place is free, it returns
// the error free.
func (l *Log) settle(ctx context.Context, c Commit, free error) (Receipt, error) {
	next, ok, err := l.get(ctx, getRequest{Seq: c.Expected + 1, NextFor: c.Aggregate.Subject()})
	switch {
	case err != nil:
		return Receipt{}, &unsettledError{err}
	case ok && next.CommitID == c.ID:
		return Receipt{Seq: next.Seq, AlreadyStored: true}, nil
	case ok:
		return Receipt{}, fmt.Errorf("%w: expected sequence %d to be its last, but commit %s is at %d", ErrConflict, c.Expected, next.CommitID, next.Seq)
	}
	last, ok, err := l.last(ctx, c.Aggregate.Subject())
	switch {
	case errors.Is(err, ErrGap):
		return Receipt{}, err
	case err != nil:
		return Receipt{}, &unsettledError{err}
	case ok && last.Seq != c.Expected || !ok && c.Expected != 0:
		return Receipt{}, fmt.Errorf("%w: expected sequence %d to be its last, but that is %d", ErrConflict, c.Expected, last.Seq)
	}
	return Receipt{}, free
}

// unsettledError: no answer came, or it does not tell whether the commit is stored.
type unsettledError struct{ error }

func (e *unsettledError) Unwrap() error { return e.error }

func unsettled(err error) bool {
	var u *unsettledError
	return errors.As(err, &u)
}

// newBackOff waits 50 ms, then longer up to 1 s, with jitter; with maxElapsed 0 it continues until the context ends.
func newBackOff(maxElapsed time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(maxElapsed),
	)
}
