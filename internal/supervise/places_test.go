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
		t.Fatalf("%d of 3 places are held", held(a))
	}
	a[0].Give()
	if held(a) != 3 || !a[3].Held() || a[4].Held() {
		t.Errorf("a place that was given back did not go to the one that asked first")
	}
}

// One tenant holds every place and waits for more: another one gets its share at once, and nothing beyond the limit is
// handed out besides.
func TestPlacesAreFair(t *testing.T) {
	p := NewPlaces(4)
	attacker := asking(p, "attacker", 20)
	prod := asking(p, "prod", 3)
	if held(attacker) != 4 || held(prod) != 2 {
		t.Fatalf("attacker holds %d, prod %d; want 4 and 2", held(attacker), held(prod))
	}
	attacker[0].Give()
	attacker[1].Give() // back to the limit of 4
	if held(attacker) != 2 || held(prod) != 2 {
		t.Errorf("a place beyond the limit was handed out: attacker %d, prod %d", held(attacker), held(prod))
	}
	prod[0].Give()
	if held(attacker) != 2 || held(prod) != 2 {
		t.Errorf("attacker holds %d, prod %d; want 2 and 2", held(attacker), held(prod))
	}
}

// Namespaces that hold nothing take turns, and all of them together stay below twice the limit.
func TestPlacesBeyondTheLimit(t *testing.T) {
	p := NewPlaces(2)
	long := asking(p, "long", 2)
	var others []*Place
	for _, ns := range []string{"a", "b", "c"} {
		others = append(others, asking(p, ns, 1)...)
	}
	if held(long) != 2 || held(others) != 2 || others[2].Held() {
		t.Fatalf("long holds %d, the others %d", held(long), held(others))
	}
	others[0].Give()
	if !others[2].Held() {
		t.Error("namespace c did not get the place that a gave back")
	}
}

func TestPlaceIsNoLongerAskedFor(t *testing.T) {
	p := NewPlaces(1)
	first, second := p.Place("ns"), p.Place("ns")
	first.Ask()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second.Take(ctx); !errors.Is(err, context.Canceled) || second.Asked() {
		t.Fatalf("taking a place without a context that lasts: %v", err)
	}
	first.Give()
	third := p.Place("ns")
	if err := third.Take(t.Context()); err != nil || !third.Held() {
		t.Errorf("the place is lost: %v", err)
	}
	if third.Give(); p.share.total != 0 || len(p.share.held) != 0 || len(p.queue) != 0 || len(p.turn) != 0 {
		t.Errorf("something is left: %+v", p)
	}
}

func TestPlacesWithoutALimit(t *testing.T) {
	var none *Places
	place := none.Place("ns")
	if err := place.Take(t.Context()); err != nil || !place.Held() {
		t.Errorf("nothing limits it, and yet: %v", err)
	}
	place.Give()
	if place.Held() || place.Asked() {
		t.Error("it was given back")
	}
}

// Who asks at the end of its time for a place that is free was not kept waiting by others, and is not told so.
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
