package transfer

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"scute.dev/kube"
)

func TestEachHandsOnEveryResultOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		items := make([]int, 1000)
		for i := range items {
			items[i] = i
		}
		var batches int
		var got []int
		err := each(t.Context(), 8, items, func(_ context.Context, i int) (int, error) {
			time.Sleep(time.Millisecond)
			return i, nil
		}, func(batch []int) error {
			batches++
			got = append(got, batch...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		if !slices.Equal(got, items) {
			t.Errorf("got %d results, want each of %d once", len(got), len(items))
		}
		if batches > 10 { // 1,000 items at 8 per ms take 125 ms: three intervals, and the size limit of a batch
			t.Errorf("%d batches: results are not collected", batches)
		}
	})
}

func TestEachHandsOnWhatWasDoneBeforeAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		var handed atomic.Int32
		err := each(t.Context(), 1, []int{1, 2, 3}, func(_ context.Context, i int) (int, error) {
			if i == 3 {
				return 0, broken
			}
			return i, nil
		}, func(batch []int) error {
			handed.Add(int32(len(batch)))
			return nil
		})
		if !errors.Is(err, broken) || handed.Load() != 2 {
			t.Errorf("error %v after %d results, want the error after both", err, handed.Load())
		}
	})
}

func TestEachStopsWhenNobodyTakesTheResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		var worked atomic.Int32
		err := each(t.Context(), 2, make([]int, 10_000), func(ctx context.Context, _ int) (int, error) {
			worked.Add(1)
			time.Sleep(10 * time.Millisecond)
			return 0, ctx.Err()
		}, func([]int) error { return refused })
		if !errors.Is(err, refused) {
			t.Errorf("error %v, want %v", err, refused)
		}
		if worked.Load() > 100 {
			t.Errorf("%d items were processed after the first batch was refused", worked.Load())
		}
	})
}

func TestEachEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Millisecond)
		defer cancel()
		err := kube.ForEach(ctx, 1, make([]int, 100), func(ctx context.Context, _ int) error {
			select {
			case <-time.After(10 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want DeadlineExceeded", err)
		}
	})
}
