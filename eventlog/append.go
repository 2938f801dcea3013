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
	// publishTimeout bounds one attempt. The next attempt detects whether the commit is stored.
	publishTimeout = 2 * time.Second
)

// Error codes of JetStream for a publish (errors.json of nats-server).
const (
	codeResources         jetstream.ErrorCode = 10023 // insufficient resources
	codeAccountLimit      jetstream.ErrorCode = 10002 // resource limits exceeded for account
	codeStorage           jetstream.ErrorCode = 10047 // insufficient storage resources for a stream with this limit
	codeStreamBytes       jetstream.ErrorCode = 10122 // the account limits the size of each stream
	codeTooLarge          jetstream.ErrorCode = 10054 // message size exceeds maximum allowed
	codeReplicas          jetstream.ErrorCode = 10074 // a server outside a cluster keeps one replica
	codeStoreFailed       jetstream.ErrorCode = 10077 // the store failed: the stream is full
	codeWrongLast         jetstream.ErrorCode = 10071 // the last sequence of the subject differs
	codeWrongLastInFlight jetstream.ErrorCode = 10164 // the same, perhaps because of a write in flight (replicated)
	codeDuplicateInFlight jetstream.ErrorCode = 10158 // the same message id is in flight (replicated)
	codeDuplicateInBatch  jetstream.ErrorCode = 10201 // the same message id, reported by an atomic batch
)

var errInFlight error = &unresolvedError{errors.New("a write on the aggregate is in flight")}

// Append stores a commit if no other commit on the aggregate follows the expected one. It returns
//
//	a receipt               stored, now or by an earlier attempt with the same commit
//	ErrConflict             another commit was first: read the aggregate and decide again
//	ErrUnavailable          unknown whether it is stored: append the same commit again, or read
//	ErrPermission           unknown whether it is stored: the server denies the user the request
//	ErrFrozen               unknown whether it is stored: a write to the disk failed; open the log again
//	ErrFull                 refused: the log is at its limit, or too near to it for a new aggregate
//	ErrTooLarge             refused: the commit does not fit into one message; split it
//	ErrMissing, ErrConfig   the stream or its configuration was changed, or its files were removed
//
// After a timeout, Append publishes the same commit again. This is safe, because the expected
// sequence admits the commit only once. Without a deadline in ctx it retries for up to 15 seconds.
func (l *Log) Append(ctx context.Context, c Commit) (Receipt, error) {
	m, err := c.encode()
	if err != nil {
		return Receipt{}, fmt.Errorf("appending: %w", err)
	}
	if size, limit := int64(m.Size()-len(m.Subject)), l.nc.MaxPayload(); size > limit {
		return Receipt{}, fmt.Errorf("appending commit %s on %s: %w: it takes %d bytes with its headers, the server's limit is %d; split it into several commits",
			c.ID, c.Aggregate, ErrTooLarge, size, limit)
	}
	var r Receipt
	if err = l.admit(ctx, c); err != nil {
		r, err = l.resolve(ctx, c, err) // an earlier attempt may have stored the commit
	} else {
		r, err = l.try(ctx, c, m)
	}
	if isUnresolved(err) && !errors.Is(err, ErrPermission) {
		r, err = l.retry(ctx, c, m)
	}
	if isUnresolved(err) && !errors.Is(err, ErrFrozen) {
		err = fmt.Errorf("%w: it is unknown whether the commit is stored; append the same commit again: %w", ErrUnavailable, err)
	}
	if err == nil {
		err = l.checkIntact()
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("appending commit %s on %s: %w", c.ID, c.Aggregate, err)
	}
	l.acknowledge(r.Seq)
	return r, nil
}

// retry repeats the attempt to store a commit until it is known whether the commit is stored.
func (l *Log) retry(ctx context.Context, c Commit, m *nats.Msg) (r Receipt, err error) {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	err = backoff.Retry(func() error {
		var last error
		switch r, last = l.try(ctx, c, m); {
		case isUnresolved(last) && !errors.Is(last, ErrFrozen) && !errors.Is(last, ErrPermission) && ctx.Err() == nil:
			return last
		default:
			// Return this error at the deadline, too: it has more details than the error of the context.
			return backoff.Permanent(last)
		}
	}, backoff.WithContext(newBackOff(0), ctx))
	return r, err
}

func (l *Log) try(ctx context.Context, c Commit, m *nats.Msg) (Receipt, error) {
	pctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	var ack *jetstream.PubAck
	err := l.denials.run(pctx, m.Subject, func(ctx context.Context) (err error) {
		ack, err = l.js.PublishMsg(ctx, m)
		return err
	})
	var refused *jetstream.APIError
	switch {
	case err == nil && ack.Stream != l.spec.name:
		return Receipt{}, fmt.Errorf("%w: stream %s stored the commit instead of %s", ErrConfig, ack.Stream, l.spec.name)
	case err == nil && !ack.Duplicate:
		return Receipt{Seq: ack.Sequence}, nil
	case err == nil:
		return l.resolve(ctx, c, errInFlight)
	case errors.As(err, &refused):
		return l.handleAPIError(ctx, c, refused)
	case errors.Is(err, ErrPermission):
		// An earlier attempt may have stored the commit, or the server may have denied another request on
		// this subject.
		return l.resolve(ctx, c, err)
	case errors.Is(err, nats.ErrConnectionClosed):
		return Receipt{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		// The stream was deleted, or has no leader at the moment.
		return Receipt{}, l.explainNoResponse(ctx, err)
	default:
		if frozen := l.checkFrozen(); frozen != nil {
			err = fmt.Errorf("%w: %w", frozen, err)
		}
		return Receipt{}, &unresolvedError{err}
	}
}

func (l *Log) explainNoResponse(ctx context.Context, why error) error {
	_, err := l.state(ctx)
	if errors.Is(err, ErrMissing) || errors.Is(err, ErrGap) || errors.Is(err, ErrConfig) {
		return err
	}
	return &unresolvedError{errors.Join(why, err)}
}

func (l *Log) handleAPIError(ctx context.Context, c Commit, refused *jetstream.APIError) (Receipt, error) {
	switch refused.ErrorCode {
	case codeWrongLast, codeWrongLastInFlight, codeDuplicateInFlight, codeDuplicateInBatch:
		return l.resolve(ctx, c, errInFlight)
	case codeStoreFailed, codeResources, codeAccountLimit:
		// An earlier attempt may have stored this commit, which then filled the log.
		return l.resolve(ctx, c, fmt.Errorf("%w: %w; raise its limit; no commits were lost", ErrFull, refused))
	case codeTooLarge:
		return Receipt{}, fmt.Errorf("%w: %w", ErrTooLarge, refused)
	default:
		if refused.Code == 403 { // sent by the listener of an embedded log
			return Receipt{}, fmt.Errorf("%w: %w", ErrPermission, refused)
		}
		return Receipt{}, fmt.Errorf("%w: %w", ErrUnavailable, refused)
	}
}

// resolve determines whether the commit is stored. This is only possible directly after the
// expected commit. If no commit follows the expected one, resolve returns the error free.
func (l *Log) resolve(ctx context.Context, c Commit, free error) (Receipt, error) {
	next, ok, err := l.get(ctx, getRequest{Seq: c.Expected + 1, NextFor: c.Aggregate.Subject()})
	switch {
	case err != nil:
		return Receipt{}, &unresolvedError{err}
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
		return Receipt{}, &unresolvedError{err}
	case ok && last.Seq != c.Expected || !ok && c.Expected != 0:
		return Receipt{}, fmt.Errorf("%w: expected sequence %d to be its last, but that is %d", ErrConflict, c.Expected, last.Seq)
	}
	return Receipt{}, free
}

// unresolvedError means that it is unknown whether the commit is stored.
type unresolvedError struct{ error }

func (e *unresolvedError) Unwrap() error { return e.error }

func isUnresolved(err error) bool {
	var u *unresolvedError
	return errors.As(err, &u)
}

// newBackOff returns an exponential backoff with a limit on the total time. If maxElapsed is 0, the
// backoff continues until the context ends.
func newBackOff(maxElapsed time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(maxElapsed),
	)
}

// reservedShare is the divisor of MaxBytes for the space that is reserved for existing aggregates:
// one part in 20. With it, an abort, a rollback or a decision can be recorded when the log accepts
// no new aggregate.
const reservedShare = 20

// AcceptsNew reports whether the log accepts a commit that creates an aggregate.
func (s Stats) AcceptsNew() bool {
	return s.MaxBytes == 0 || s.Bytes < s.MaxBytes-s.MaxBytes/reservedShare
}

// admit refuses a commit that creates an aggregate if the log may not have the space to complete
// the aggregate. Events of daemons are exempt.
func (l *Log) admit(ctx context.Context, c Commit) error {
	if c.Expected > 0 || c.Aggregate.Kind == KindDaemon {
		return nil
	}
	s, err := l.Stats(ctx)
	if err != nil {
		return err
	}
	if s.AcceptsNew() {
		return nil
	}
	return fmt.Errorf("%w for new work: it holds %d of %d bytes, and the last %d %% are reserved for work in progress; raise its limit; no commits were lost",
		ErrFull, s.Bytes, s.MaxBytes, 100/reservedShare)
}
