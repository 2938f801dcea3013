package transfer

import (
	"cmp"
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// batchDelay is how long a result waits for other results, so that one commit to the log
	// contains many.
	batchDelay = 50 * time.Millisecond
	batchMax   = 250
)

// each calls work for every item, at most limit at once, and calls hand with batches of results, in
// the caller's goroutine. The first error stops the work; results that are ready by then are still
// passed to hand.
func each[T, R any](ctx context.Context, limit int, items []T, work func(context.Context, T) (R, error), hand func([]R) error) error {
	return stream(ctx, limit, func(ctx context.Context, put func(T)) error {
		for _, item := range items {
			if ctx.Err() != nil {
				break
			}
			put(item)
		}
		return ctx.Err()
	}, work, hand)
}

// stream works like each, except that find produces the items by calling put for each. put blocks
// while limit calls of work are running, and is safe for concurrent use.
func stream[T, R any](ctx context.Context, limit int, find func(ctx context.Context, put func(T)) error, work func(context.Context, T) (R, error), hand func([]R) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, workCtx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	results := make(chan R, max(limit, batchMax)) // work does not block while hand stores a batch
	done := make(chan error, 1)
	go func() {
		notFound := find(workCtx, func(item T) {
			group.Go(func() error {
				r, err := work(workCtx, item)
				if err == nil {
					results <- r // the loop below reads until results is closed
				}
				return err
			})
		})
		done <- cmp.Or(group.Wait(), notFound) // an error of work also cancels find, whose error says less
		close(results)
	}()

	var batch []R
	var failed error
	flush := func() {
		if len(batch) > 0 && failed == nil {
			if failed = hand(batch); failed != nil {
				stop()
			}
		}
		batch = nil
	}
	timer := time.NewTicker(batchDelay)
	defer timer.Stop()
	for open := true; open; {
		select {
		case r, ok := <-results:
			if open = ok; ok {
				batch = append(batch, r)
			}
			if len(batch) >= batchMax {
				flush()
			}
		case <-timer.C:
			flush()
		}
	}
	flush()
	return cmp.Or(failed, <-done, ctx.Err())
}
