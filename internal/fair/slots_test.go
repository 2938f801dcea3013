package fair

import (
	"context"
	"errors"
	"testing"
)

func countHeld(places []*Slot) (n int) {
	for _, p := range places {
		if p.Held() {
			n++
		}
	}
	return n
}

func requestSlots(p *Slots, namespace string, n int) []*Slot {
	var list []*Slot
	for range n {
		place := p.Slot(namespace)
		place.Request()
		list = append(list, place)
	}
	return list
}

func TestPlacesAreBounded(t *testing.T) {
	p := NewSlots(3)
	a := requestSlots(p, "a", 5)
	if countHeld(a) != 3 {
		t.Fatalf("%d of 3 workers are in use", countHeld(a))
	}
	a[0].Release()
	if countHeld(a) != 3 || !a[3].Held() || a[4].Held() {
		t.Errorf("a released worker did not go to the first request")
	}
}

// TestPlacesAreFair checks that a tenant gets its share at once while another one uses all workers and requests more,
// and that no other workers are added beyond the limit.
func TestPlacesAreFair(t *testing.T) {
	p := NewSlots(4)
	attacker := requestSlots(p, "attacker", 20)
	prod := requestSlots(p, "prod", 3)
	if countHeld(attacker) != 4 || countHeld(prod) != 2 {
		t.Fatalf("attacker has %d, prod %d; want 4 and 2", countHeld(attacker), countHeld(prod))
	}
	attacker[0].Release()
	attacker[1].Release() // back to the limit of 4
	if countHeld(attacker) != 2 || countHeld(prod) != 2 {
		t.Errorf("a worker beyond the limit was added: attacker %d, prod %d", countHeld(attacker), countHeld(prod))
	}
	prod[0].Release()
	if countHeld(attacker) != 2 || countHeld(prod) != 2 {
		t.Errorf("attacker has %d, prod %d; want 2 and 2", countHeld(attacker), countHeld(prod))
	}
}

// TestPlacesBeyondTheLimit checks that namespaces without workers take turns, and that the total stays at or below
// twice the limit.
func TestPlacesBeyondTheLimit(t *testing.T) {
	p := NewSlots(2)
	long := requestSlots(p, "long", 2)
	var others []*Slot
	for _, ns := range []string{"a", "b", "c"} {
		others = append(others, requestSlots(p, ns, 1)...)
	}
	if countHeld(long) != 2 || countHeld(others) != 2 || others[2].Held() {
		t.Fatalf("long has %d, the others %d", countHeld(long), countHeld(others))
	}
	others[0].Release()
	if !others[2].Held() {
		t.Error("namespace c did not get the worker that a released")
	}
}

func TestPlaceIsNoLongerAskedFor(t *testing.T) {
	p := NewSlots(1)
	first, second := p.Slot("ns"), p.Slot("ns")
	first.Request()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second.Acquire(ctx); !errors.Is(err, context.Canceled) || second.Pending() {
		t.Fatalf("Take with a canceled context = %v", err)
	}
	first.Release()
	third := p.Slot("ns")
	if err := third.Acquire(t.Context()); err != nil || !third.Held() {
		t.Errorf("the worker was lost: %v", err)
	}
	if third.Release(); p.share.total != 0 || len(p.share.held) != 0 || p.waiting.Len() != 0 || len(p.waiting.waiting) != 0 {
		t.Errorf("state remains: %+v", p)
	}
}

func TestPlacesWithoutALimit(t *testing.T) {
	var none *Slots
	place := none.Slot("ns")
	if err := place.Acquire(t.Context()); err != nil || !place.Held() {
		t.Errorf("Take without a limit = %v", err)
	}
	place.Release()
	if place.Held() || place.Pending() {
		t.Error("the worker was not released")
	}
}

// TestAFreePlaceIsTakenAtTheEndOfTime checks that Take succeeds with a canceled context if a worker is free: other
// tenants are not the reason.
func TestAFreePlaceIsTakenAtTheEndOfTime(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	p := NewSlots(1)
	for range 100 {
		place := p.Slot("a")
		if err := place.Acquire(over); err != nil {
			t.Fatal(err)
		}
		place.Release()
	}
}
