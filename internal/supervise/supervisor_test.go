package supervise

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestWaitingTenants: a tenant's runs that wait for ever leave every other tenant a share of what is driven at once, not
// one run alone: that one may wait for ever, too.
func TestWaitingTenants(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := make(chan string)
	s := &Supervisor{
		Noun: "run", Limit: 4, Logger: slog.New(slog.DiscardHandler), Wake: make(chan struct{}),
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

// TestLooksSeldom: what is due is not looked at for each commit of a busy log.
func TestLooksSeldom(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wake, looks := make(chan struct{}), 0
	s := &Supervisor{
		Noun: "run", Limit: 1, Logger: slog.New(slog.DiscardHandler), Wake: wake,
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
