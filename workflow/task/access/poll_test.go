package access

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"scute.dev/workflow/task"
)

// TestLongWait checks that a wait of days polls at growing intervals, and at short ones again after a change.
func TestLongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		began, looks, says := time.Now(), 0, "approval"
		var longest, after time.Duration
		last := began
		err := Poll(ctx, &task.Call{}, func(context.Context) (string, error) {
			gap := time.Since(last)
			last = time.Now()
			switch waited := time.Since(began); {
			case waited < time.Minute && gap > pollMax:
				t.Errorf("after %s, the interval is %s", waited, gap)
			case waited > 12*time.Hour && says == "approval":
				says = "the rest"
			case says == "the rest" && after == 0:
				after = gap
			}
			longest = max(longest, gap)
			looks++
			return says, nil
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if looks > 4000 || longest > pollLongest || after > pollMax {
			t.Errorf("%d polls in a day, longest interval %s, %s after a change", looks, longest, after)
		}
	})
}
