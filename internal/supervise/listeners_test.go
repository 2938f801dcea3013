package supervise

import "testing"

func TestBells(t *testing.T) {
	var b Bells
	b.Ring("a", 1) // nobody listens
	ring, down := b.Hang("a")
	other, _ := b.Hang("b")
	b.Ring("a", 2)
	b.Ring("a", 3)
	if seq := <-ring; seq != 3 || len(ring) != 0 || len(other) != 0 {
		t.Errorf("heard of %d, and %d more, and %d of another", seq, len(ring), len(other))
	}
	next, _ := b.Hang("a")
	down() // the older one; the next listens on
	if b.Ring("a", 4); len(next) != 1 || len(ring) != 0 {
		t.Errorf("the next hears %d, the one before %d", len(next), len(ring))
	}
}
