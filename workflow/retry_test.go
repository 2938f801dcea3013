package workflow

import (
	"testing"
	"time"
)

// TestRetryWaitsAtLeast checks that a task that fails at once is not retried thousands of times a minute.
func TestRetryWaitsAtLeast(t *testing.T) {
	none := Retry{Max: 1000}
	for n, want := range map[int]time.Duration{1: 0, 3: 0, 4: time.Second, 1000: time.Second} {
		if got := none.DelayBefore(n); got != want {
			t.Errorf("without a delay: Wait(%d) = %s, want %s", n, got, want)
		}
	}
	quick := Retry{Max: 1000, Delay: Duration(100 * time.Millisecond), Factor: 2, MaxDelay: Duration(3 * time.Second)}
	for n, want := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 4: time.Second, 5: 1600 * time.Millisecond, 10: 3 * time.Second} {
		if got := quick.DelayBefore(n); got != want {
			t.Errorf("Wait(%d) = %s, want %s", n, got, want)
		}
	}
}
