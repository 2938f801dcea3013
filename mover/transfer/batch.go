package transfer

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// linger is how long a result waits for company before it is handed on: the log then costs one commit for many.
	linger = 50 * time.Millisecond
	// batchMax bounds how many results are handed on at once.
	batchMax = 250
)

// each works on every item, at most limit at once, and hands results on in batches, in the caller's goroutine. The
// first error stops the work; results that were already there are still handed on.
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

// stream is each for items that are still being found. put waits while as many are worked on as may be, and several goroutines may call it.
func stream[T, R any](ctx context.Context, limit int, find func(ctx context.Context, put func(T)) error, work func(context.Context, T) (R, error), hand func([]R) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, workCtx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	results := make(chan R, max(limit, batchMax)) // nobody waits while a batch is being stored
	done := make(chan error, 1)
	go func() {
		notFound := find(workCtx, func(item T) {
			group.Go(func() error {
				r, err := work(workCtx, item)
				if err == nil {
					results <- r // the loop below reads until the end
				}
				return err
			})
		})
		// An error of the work ends the finding too, with an error that tells less.
		err := group.Wait()
		if err == nil {
			err = notFound
		}
		done <- err
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
	timer := time.NewTicker(linger)
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
	err := <-done
	if failed != nil {
		return failed
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// parallel is each without results.
func parallel[T any](ctx context.Context, limit int, items []T, work func(context.Context, T) error) error {
	return each(ctx, limit, items, func(ctx context.Context, item T) (struct{}, error) {
		return struct{}{}, work(ctx, item)
	}, nothing)
}
