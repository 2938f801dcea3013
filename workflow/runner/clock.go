package runner

import "time"

// clock is the time of a run while it is driven. It never goes back: delays and timeouts are moments in events, and when the
// machine's clock is set back, each of them would come later by as much. Set forward, it is followed. Its fields belong to the
// goroutine of Drive.
type clock struct {
	wall  func() time.Time
	began time.Time // read once, for what has passed since by the monotonic clock
	base  time.Time // what it was when it began, as far as is known by now
}

func newClock(wall func() time.Time) *clock {
	return &clock{wall: wall, began: time.Now(), base: wall().Round(0)}
}

func (c *clock) now() time.Time {
	passed := time.Since(c.began)
	if wall := c.wall().Round(0); wall.After(c.base.Add(passed)) {
		c.base = wall.Add(-passed)
	}
	return c.base.Add(passed)
}
