package supervise

import "testing"

func TestNews(t *testing.T) {
	var d Drivers
	d.notify("a", 1) // no listener
	news, stop := d.Subscribe("a")
	other, _ := d.Subscribe("b")
	d.notify("a", 2)
	d.notify("a", 3)
	if seq := <-news; seq != 3 || len(news) != 0 || len(other) != 0 {
		t.Errorf("received %d, then %d more, and %d of another ID", seq, len(news), len(other))
	}
	next, _ := d.Subscribe("a")
	stop() // the older listener; the next one continues
	if d.notify("a", 4); len(next) != 1 || len(news) != 0 {
		t.Errorf("the next listener received %d, the earlier one %d", len(next), len(news))
	}
}

func TestThrottled(t *testing.T) {
	changes := 0
	d := Drivers{Changed: func(string) { changes++ }}
	for _, why := range []Throttled{{}, {Reason: NoFreePlace}, {Reason: NoFreePlace}, {}, {}} {
		d.Throttle("a", why)
		if d.Throttled("a") != why || d.Throttled("b") != (Throttled{}) {
			t.Errorf("after %+v: Throttled = %+v", why, d.Throttled("a"))
		}
	}
	if changes != 2 {
		t.Errorf("got %d changes, want 2", changes)
	}
}
