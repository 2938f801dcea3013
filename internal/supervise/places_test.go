package supervise

import (
	"context"
	"errors"
	"testing"
)

func held(places []*Place) (n int) {
	for _, p := range places {
		if p.Held() {
			n++
		}
	}
	return n
}

func asking(p *Places, namespace string, n int) []*Place {
	var list []*Place
	for range n {
		place := p.Place(namespace)
		place.Ask()
		list = append(list, place)
	}
	return list
}

func TestPlacesAreBounded(t *testing.T) {
	p := NewPlaces(3)
	a := asking(p, "a", 5)
	if held(a) != 3 {
		t.Fatalf("%d of 3 workers are in use", held(a))
	}
	a[0].Give()
	if held(a) != 3 || !a[3].Held() || a[4].Held() {
		t.Errorf("a released worker did not go to the first request")
	}
}

// TestPlacesAreFair checks that a tenant gets its share at once while another one uses all workers and requests more,
// and that no other workers are added beyond the limit.
func TestPlacesAreFair(t *testing.T) {
	p := NewPlaces(4)
	attacker := asking(p, "attacker", 20)
	prod := asking(p, "prod", 3)
	if held(attacker) != 4 || held(prod) != 2 {
		t.Fatalf("attacker has %d, prod %d; want 4 and 2", held(attacker), held(prod))
	}
	attacker[0].Give()
	attacker[1].Give() // back to the limit of 4
	if held(attacker) != 2 || held(prod) != 2 {
		t.Errorf("a worker beyond the limit was added: attacker %d, prod %d", held(attacker), held(prod))
	}
	prod[0].Give()
	if held(attacker) != 2 || held(prod) != 2 {
		t.Errorf("attacker has %d, prod %d; want 2 and 2", held(attacker), held(prod))
	}
}

// TestPlacesBeyondTheLimit checks that namespaces without workers take turns, and that the total stays at or below
// twice the limit.
func TestPlacesBeyondTheLimit(t *testing.T) {
	p := NewPlaces(2)
	long := asking(p, "long", 2)
	var others []*Place
	for _, ns := range []string{"a", "b", "c"} {
		others = append(others, asking(p, ns, 1)...)
	}
	if held(long) != 2 || held(others) != 2 || others[2].Held() {
		t.Fatalf("long has %d, the others %d", held(long), held(others))
	}
	others[0].Give()
	if !others[2].Held() {
		t.Error("namespace c did not get the worker that a released")
	}
}

func TestPlaceIsNoLongerAskedFor(t *testing.T) {
	p := NewPlaces(1)
	first, second := p.Place("ns"), p.Place("ns")
	first.Ask()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second.Take(ctx); !errors.Is(err, context.Canceled) || second.Asked() {
		t.Fatalf("Take with a canceled context = %v", err)
	}
	first.Give()
	third := p.Place("ns")
	if err := third.Take(t.Context()); err != nil || !third.Held() {
		t.Errorf("the worker was lost: %v", err)
	}
	if third.Give(); p.share.total != 0 || len(p.share.held) != 0 || len(p.queue) != 0 || len(p.turn) != 0 {
		t.Errorf("state remains: %+v", p)
	}
}

func TestPlacesWithoutALimit(t *testing.T) {
	var none *Places
	place := none.Place("ns")
	if err := place.Take(t.Context()); err != nil || !place.Held() {
		t.Errorf("Take without a limit = %v", err)
	}
	place.Give()
	if place.Held() || place.Asked() {
		t.Error("the worker was not released")
	}
}

// TestAFreePlaceIsTakenAtTheEndOfTime checks that Take succeeds with a canceled context if a worker is free: other
// tenants are not the reason.
func TestAFreePlaceIsTakenAtTheEndOfTime(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	p := NewPlaces(1)
	for range 100 {
		place := p.Place("a")
		if err := place.Take(over); err != nil {
			t.Fatal(err)
		}
		place.Give()
	}
}
