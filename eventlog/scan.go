package eventlog

import (
	"context"
	"errors"
	"fmt"
)

// Scan hands every commit that can be read to fn, in order, up to the head of the log at the time of the call. Replay
// stops at the first one that cannot be read; Scan continues after it, so the sequences may have gaps. It is for logs
// opened with Examine: to find out what is lost, and to save the rest. An error of fn ends it and is returned.
func (l *Log) Scan(ctx context.Context, fn func(Record) error) error {
	state, err := l.state(ctx)
	if err != nil {
		return fmt.Errorf("scanning the log: %w", err)
	}
	cursor := max(l.all()[0].stream.CachedInfo().State.FirstSeq, 1) - 1
	head, err := l.lastReadable(ctx, cursor, state.LastSeq)
	for err == nil && cursor < head {
		err = l.read(ctx, &cursor, head, replayPatience, fn)
		if errors.Is(err, ErrGap) {
			// The server does not deliver the next commit: it is asked for each by its sequence until one can be read.
			err = l.skip(ctx, &cursor, head, fn)
		}
	}
	if err != nil {
		return fmt.Errorf("scanning the log: at %d: %w", cursor, err)
	}
	return nil
}

// lastReadable is the last sequence between two at which a commit can be read.
func (l *Log) lastReadable(ctx context.Context, after, head uint64) (uint64, error) {
	for ; head > after; head-- {
		if _, ok, err := l.get(ctx, getRequest{Seq: head}); ok || err != nil {
			return head, err
		}
	}
	return after, nil
}

// skip hands the next commit that can be read to fn, if there is one.
func (l *Log) skip(ctx context.Context, cursor *uint64, head uint64, fn func(Record) error) error {
	for *cursor < head {
		r, ok, err := l.get(ctx, getRequest{Seq: *cursor + 1})
		if err != nil {
			return err
		}
		*cursor++
		if ok {
			return fn(r)
		}
	}
	return nil
}
