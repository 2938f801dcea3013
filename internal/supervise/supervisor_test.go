package supervise

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"scute.dev/aggregate"
)

// testObjects are what a supervisor drives in a test, with a simulated clock.
type testObjects struct {
	*Supervisor
	Drivers

	mu    sync.Mutex
	due   map[string]time.Time // when Drive has something to do
	begun []string
	// end lets a drive return, with an error or nil.
	end map[string]chan error
}

func supervise(t *testing.T, limit int, ids ...string) *testObjects {
	t.Helper()
	th := &testObjects{due: make(map[string]time.Time), end: make(map[string]chan error)}
	for _, id := range ids {
		th.due[id], th.end[id] = time.Now(), make(chan error)
	}
	th.Supervisor = &Supervisor{
		Noun: "run", Limit: limit, Logger: slog.New(slog.DiscardHandler), Drivers: &th.Drivers,
		IDs: func() []string { return ids },
		Due: func(id string) (time.Duration, bool) {
			th.mu.Lock()
			defer th.mu.Unlock()
			at := th.due[id]
			return time.Until(at), !at.IsZero()
		},
		Drive: func(ctx context.Context, id string) error {
			th.mu.Lock()
			th.begun = append(th.begun, id)
			th.mu.Unlock()
			select {
			case err := <-th.end[id]:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		th.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return th
}

// set sets the time when a thing is due; the zero time is never.
func (th *testObjects) set(id string, at time.Time) {
	th.mu.Lock()
	th.due[id] = at
	th.mu.Unlock()
	th.Supervisor.Changed(id, 0)
}

// wantDriven checks which drives have started since its last call.
func (th *testObjects) wantDriven(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	th.mu.Lock()
	defer th.mu.Unlock()
	if got := slices.Sorted(slices.Values(th.begun)); !slices.Equal(got, want) {
		t.Errorf("driven %v, want %v", got, want)
	}
	th.begun = nil
}

// TestWaitingTenants checks that a tenant whose runs wait forever leaves every other tenant a share of the concurrent
// drives, rather than a single one, which may wait forever too.
func TestWaitingTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := supervise(t, 4, "attacker/1", "attacker/2", "attacker/3", "attacker/4", "attacker/5", "prod/1", "prod/2", "prod/3")
		synctest.Wait()
		th.mu.Lock()
		defer th.mu.Unlock()
		if !slices.Contains(th.begun, "prod/1") || !slices.Contains(th.begun, "prod/2") || len(th.begun) < 4 || len(th.begun) > 6 {
			t.Errorf("driven %v", th.begun)
		}
	})
}

// TestWhatIsNotDrivenIsThrottled checks that a thing is throttled until it is driven or no longer due.
func TestWhatIsNotDrivenIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := supervise(t, 1, "ns/1", "ns/2", "ns/3")
		throttled := func(want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, id := range []string{"ns/1", "ns/2", "ns/3"} {
				why := th.Throttled(id)
				if why.Reason == TooManyUnfinished && strings.Contains(why.Message, "1 unfinished runs") && strings.Contains(why.Message, "or 2 if") {
					got = append(got, id)
				} else if why != (Throttled{}) {
					t.Errorf("Throttled(%s) = %+v", id, why)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("throttled %v, want %v", got, want)
			}
		}
		th.wantDriven(t, "ns/1")
		throttled("ns/2", "ns/3")
		th.set("ns/1", time.Time{})
		th.end["ns/1"] <- nil
		th.wantDriven(t, "ns/2")
		throttled("ns/3")
		th.set("ns/3", time.Time{}) // it was aborted
		throttled()
	})
}

// TestWhatChangedIsDriven checks that a changed thing is driven at once, and once for many changes, and that a thing
// with a later time is driven at that time.
func TestWhatChangedIsDriven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := supervise(t, 4, "ns/1", "ns/2")
		th.wantDriven(t, "ns/1", "ns/2")
		th.set("ns/1", time.Time{})
		th.end["ns/1"] <- nil
		time.Sleep(maxBackoff)
		th.wantDriven(t)
		for range 100 {
			th.set("ns/1", time.Now())
		}
		th.wantDriven(t, "ns/1")

		th.set("ns/2", time.Now().Add(time.Hour))
		th.end["ns/2"] <- nil
		time.Sleep(time.Hour - time.Second)
		th.wantDriven(t)
		time.Sleep(time.Second)
		th.wantDriven(t, "ns/2")
	})
}

// TestBackoff checks that a thing that is due again after its drive waits longer each time, despite changes. The
// backoff is reset if it was not due in between.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := supervise(t, 4, "ns/1")
		th.wantDriven(t, "ns/1")
		for _, err := range []error{errors.New("the log is away"), aggregate.ErrClaimLost, nil, errors.New("again")} {
			th.Supervisor.Changed("ns/1", 0) // a separate commit
			th.end["ns/1"] <- err
			time.Sleep(initialBackoff - 1)
			th.Supervisor.Changed("ns/1", 0)
			th.wantDriven(t)
			time.Sleep(maxBackoff)
			th.wantDriven(t, "ns/1")
		}
		th.set("ns/1", time.Time{})
		th.end["ns/1"] <- nil
		time.Sleep(maxBackoff)
		th.set("ns/1", time.Now())
		th.wantDriven(t, "ns/1")
		th.end["ns/1"] <- nil
		time.Sleep(initialBackoff)
		th.wantDriven(t, "ns/1")
	})
}
