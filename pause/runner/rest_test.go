package runner

import (
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// TestRest: a few pauses at rest are looked at as often as one; many share the looks.
func TestRest(t *testing.T) {
	now := time.Now()
	r := &Runner{}
	if got := r.rest(now); got != lookSlow {
		t.Errorf("without a bound one waits %s, want %s", got, lookSlow)
	}
	r.Rested = rate.NewLimiter(2, 1)
	for i := range 100 {
		if got, want := r.rest(now), lookSlow+time.Duration(i)*time.Second/2; got != want {
			t.Fatalf("pause %d of many waits %s, want %s", i, got, want)
		}
	}
	if got := r.rest(now.Add(time.Minute)); got != lookSlow {
		t.Errorf("when there is nobody before it, one waits %s, want %s", got, lookSlow)
	}
}
