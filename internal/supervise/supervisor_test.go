package supervise

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitingTenants: a tenant's runs that wait for ever leave every other tenant a share of what is driven at once, not
// one run alone: that one may wait for ever, too.
func TestWaitingTenants(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := make(chan string)
	s := &Supervisor{
		Noun: "run", Limit: 4, Logger: slog.New(slog.DiscardHandler), Wake: make(chan struct{}), Throttle: func(string, Throttled) {},
		Due: func() []string {
			return []string{"attacker/1", "attacker/2", "attacker/3", "attacker/4", "attacker/5", "prod/1", "prod/2", "prod/3"}
		},
		Namespace: func(id string) string { ns, _, _ := strings.Cut(id, "/"); return ns },
		Drive: func(ctx context.Context, id string) error {
			begun <- id
			<-ctx.Done()
			return ctx.Err()
		},
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	driven := make(map[string]bool)
	for len(driven) < 6 {
		select {
		case id := <-begun:
			driven[id] = true
		case <-time.After(5 * time.Second):
			t.Fatalf("driven are %v, and nothing else begins", driven)
		}
	}
	if !driven["prod/1"] || !driven["prod/2"] {
		t.Errorf("driven are %v", driven)
	}
	cancel()
	<-ended
}

// TestWhatIsNotDrivenIsThrottled, until it is driven or nothing is left to be done for it.
func TestWhatIsNotDrivenIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var throttles Throttles
		due, wake, end := []string{"ns/1", "ns/2", "ns/3"}, make(chan struct{}), make(chan struct{})
		s := &Supervisor{
			Noun: "run", Limit: 1, Logger: slog.New(slog.DiscardHandler), Wake: wake,
			Due: func() []string { return due }, Namespace: func(string) string { return "ns" },
			Throttle: func(id string, why Throttled) { throttles.Set(id, why) },
			Drive: func(ctx context.Context, _ string) error {
				select {
				case <-end:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			},
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Run(ctx)
		}()
		throttled := func(want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, id := range []string{"ns/1", "ns/2", "ns/3"} {
				why := throttles.Of(id)
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
		throttled("ns/2", "ns/3")
		due = []string{"ns/2", "ns/3"}
		end <- struct{}{}
		time.Sleep(lookEvery)
		throttled("ns/3")
		due = []string{"ns/2"} // the third was aborted
		wake <- struct{}{}
		time.Sleep(lookEvery)
		throttled()
		cancel()
		<-ended
	})
}

// TestLooksSeldom: what is due is not looked at for each commit of a busy log.
func TestLooksSeldom(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wake, looks := make(chan struct{}), 0
	s := &Supervisor{
		Noun: "run", Limit: 1, Logger: slog.New(slog.DiscardHandler), Wake: wake, Throttle: func(string, Throttled) {},
		Due: func() []string {
			looks++
			return nil
		},
	}
	ended := make(chan struct{})
	begun := time.Now()
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	for range 100_000 {
		wake <- struct{}{}
	}
	cancel()
	<-ended
	if most := 2 + int(time.Since(begun)/lookEvery); looks > most {
		t.Errorf("looked %d times, want %d at most", looks, most)
	}
}
