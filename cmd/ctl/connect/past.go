package connect

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"scute.dev/eventlog"
)

var errEnd = errors.New("the log is not read any further")

// SetEnd omits all commits after seq from later reads.
func (l *Log) SetEnd(seq uint64) { l.end = seq }

// Read reads commits of an aggregate, up to End.
func (l *Log) Read(ctx context.Context, a eventlog.Aggregate, after uint64) ([]eventlog.Record, error) {
	records, err := l.Log.Read(ctx, a, after)
	if err != nil || l.end == 0 {
		return records, err
	}
	later := sort.Search(len(records), func(i int) bool { return records[i].Seq > l.end })
	return records[:later], nil
}

// Replay replays the log, up to End.
func (l *Log) Replay(ctx context.Context, after uint64, fn func(eventlog.Record) error) (uint64, error) {
	if l.end == 0 {
		return l.Log.Replay(ctx, after, fn)
	}
	head, err := l.Log.Replay(ctx, after, func(r eventlog.Record) error {
		if r.Seq > l.end {
			return errEnd
		}
		return fn(r)
	})
	if errors.Is(err, errEnd) {
		return l.end, nil
	}
	return head, err
}

// Last returns the last commit that was stored at a time or before. It returns an error if there is none.
func (l *Log) Last(ctx context.Context, t time.Time) (eventlog.Record, error) {
	last, err := l.Until(ctx, t)
	if err == nil && last.Seq == 0 {
		err = fmt.Errorf("the log at %s has no commit from %s or earlier", l.Where, t.UTC().Format(time.RFC3339))
	}
	return last, err
}

// Until returns the last commit that was stored at a time or before; its sequence is 0 if there is none. It sends about as many requests as the
// number of commits has bits.
func (l *Log) Until(ctx context.Context, t time.Time) (last eventlog.Record, err error) {
	head, err := l.Head(ctx)
	if err != nil {
		return eventlog.Record{}, err
	}
	for first, after := uint64(1), head+1; first < after; {
		middle := first + (after-first)/2
		r, err := l.At(ctx, middle)
		switch {
		case err != nil:
			return eventlog.Record{}, err
		case r.Stored.After(t):
			after = middle
		default:
			last, first = r, middle+1
		}
	}
	return last, nil
}
