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

// things are what a supervisor drives in a test, in a bubble of time.
type things struct {
	*Supervisor
	Drivers

	mu    sync.Mutex
	due   map[string]time.Time // when Drive has something to do
	begun []string
	// end lets one of them end, with an error or without.
	end map[string]chan error
}

func supervise(t *testing.T, limit int, ids ...string) *things {
	t.Helper()
	th := &things{due: make(map[string]time.Time), end: make(map[string]chan error)}
	for _, id := range ids {
		th.due[id], th.end[id] = time.Now(), make(chan error)
	}
	th.Supervisor = &Supervisor{
		Noun: "run", Limit: limit, Logger: slog.New(slog.DiscardHandler), Throttle: th.Drivers.Throttle,
		IDs:       func() []string { return ids },
		Namespace: func(id string) string { ns, _, _ := strings.Cut(id, "/"); return ns },
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

// set says when one of them is due, never with the zero time.
func (th *things) set(id string, at time.Time) {
	th.mu.Lock()
	th.due[id] = at
	th.mu.Unlock()
	th.Supervisor.Changed(id)
}

// drove is what began to be driven since it was asked last.
func (th *things) drove(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	th.mu.Lock()
	defer th.mu.Unlock()
	if got := slices.Sorted(slices.Values(th.begun)); !slices.Equal(got, want) {
		t.Errorf("driven are %v, want %v", got, want)
	}
	th.begun = nil
}

// TestWaitingTenants: a tenant's runs that wait without end leave every other tenant a share of what is driven at once,
// not only one run, because that one may wait without end, too.
func TestWaitingTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := supervise(t, 4, "attacker/1", "attacker/2", "attacker/3", "attacker/4", "attacker/5", "prod/1", "prod/2", "prod/3")
		synctest.Wait()
		th.mu.Lock()
		defer th.mu.Unlock()
		if !slices.Contains(th.begun, "prod/1") || !slices.Contains(th.begun, "prod/2") || len(th.begun) < 4 || len(th.begun) > 6 {
			t.Errorf("driven are %v", th.begun)
		}
	})
}

// TestWhatIsNotDrivenIsThrottled, until it is driven or nothing is left to be done for it.
func TestWhatIsNotDrivenIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := supervise(t, 1, "ns/1", "ns/2", "ns/3")
		throttled := func(want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, id := range []string{"ns/1", "ns/2", "ns/3"} {
				why := th.Throttled(id)
				if why.Reason == TooManyUnfinished && strings.Contains(why.Message, "1 unfinished runs") && strings.Contains(why.Message, "up to 2") {
					got = append(got, id)
				} else if why != (Throttled{}) {
					t.Errorf("%s: %+v", id, why)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("throttled are %v, want %v", got, want)
			}
		}
		th.drove(t, "ns/1")
		throttled("ns/2", "ns/3")
		th.set("ns/1", time.Time{})
		th.end["ns/1"] <- nil
		th.drove(t, "ns/2")
		throttled("ns/3")
		th.set("ns/3", time.Time{}) // it was aborted
		throttled()
	})
}

// TestWhatChangedIsDriven: at once, and once, however often it changed; what is due later at that time, whatever happens.
func TestWhatChangedIsDriven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := supervise(t, 4, "ns/1", "ns/2")
		th.drove(t, "ns/1", "ns/2")
		th.set("ns/1", time.Time{})
		th.end["ns/1"] <- nil
		time.Sleep(lastBackoff)
		th.drove(t)
		for range 100 {
			th.set("ns/1", time.Now())
		}
		th.drove(t, "ns/1")

		th.set("ns/2", time.Now().Add(time.Hour))
		th.end["ns/2"] <- nil
		time.Sleep(time.Hour - time.Second)
		th.drove(t)
		time.Sleep(time.Second)
		th.drove(t, "ns/2")
	})
}

// TestBackoff: what is due after its driving ended rests, longer each time, and however often it changes. What was not due in
// between rests no longer.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := supervise(t, 4, "ns/1")
		th.drove(t, "ns/1")
		for _, err := range []error{errors.New("the log is away"), aggregate.ErrLost, nil, errors.New("again")} {
			th.Supervisor.Changed("ns/1") // a separate commit
			th.end["ns/1"] <- err
			time.Sleep(firstBackoff - 1)
			th.Supervisor.Changed("ns/1")
			th.drove(t)
			time.Sleep(lastBackoff)
			th.drove(t, "ns/1")
		}
		th.set("ns/1", time.Time{})
		th.end["ns/1"] <- nil
		time.Sleep(lastBackoff)
		th.set("ns/1", time.Now())
		th.drove(t, "ns/1")
		th.end["ns/1"] <- nil
		time.Sleep(firstBackoff)
		th.drove(t, "ns/1")
	})
}
