package supervise

import "testing"

func TestListeners(t *testing.T) {
	var l Listeners
	l.Tell("a", 1) // nobody listens
	news, stop := l.Listen("a")
	other, _ := l.Listen("b")
	l.Tell("a", 2)
	l.Tell("a", 3)
	if seq := <-news; seq != 3 || len(news) != 0 || len(other) != 0 {
		t.Errorf("heard of %d, and %d more, and %d of another", seq, len(news), len(other))
	}
	next, _ := l.Listen("a")
	stop() // the older one; the next listens on
	if l.Tell("a", 4); len(next) != 1 || len(news) != 0 {
		t.Errorf("the next hears %d, the one before %d", len(next), len(news))
	}
}
