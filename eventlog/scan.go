package eventlog

import (
	"context"
	"errors"
	"fmt"
)

// Scan calls fn with every readable commit, in order, up to the head of the log at the time of the call. Replay stops at the first unreadable
// commit; Scan continues after it, so the sequences may have gaps. It is for logs opened with Examine, to find out which commits are lost, and to
// save the rest. If fn returns an error, Scan stops and returns it.
func (l *Log) Scan(ctx context.Context, fn func(Record) error) error {
	state, err := l.state(ctx)
	if err != nil {
		return fmt.Errorf("scanning the log: %w", err)
	}
	r := &pass{cursor: max(state.FirstSeq, 1) - 1, fn: fn}
	r.until, err = l.lastReadable(ctx, r.cursor, state.LastSeq)
	for err == nil && r.cursor < r.until {
		err = l.read(ctx, r, replayTimeout)
		if errors.Is(err, ErrGap) {
			// The server does not deliver the next commit, so each is requested by its sequence until one can be read.
			err = l.skip(ctx, r)
		}
	}
	if err != nil {
		return fmt.Errorf("scanning the log: at %d: %w", r.cursor, err)
	}
	return nil
}

// lastReadable returns the last sequence in (after, head] with a readable commit.
func (l *Log) lastReadable(ctx context.Context, after, head uint64) (uint64, error) {
	for ; head > after; head-- {
		if _, ok, err := l.get(ctx, getRequest{Seq: head}); ok || err != nil {
			return head, err
		}
	}
	return after, nil
}

// skip calls fn with the next readable commit, if there is one.
func (l *Log) skip(ctx context.Context, r *pass) error {
	for r.cursor < r.until {
		next, ok, err := l.get(ctx, getRequest{Seq: r.cursor + 1})
		if err != nil {
			return err
		}
		r.cursor++
		if ok {
			return r.fn(next)
		}
	}
	return nil
}
