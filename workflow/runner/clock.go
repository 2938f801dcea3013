package runner

import "time"

// clock is the time of a run while it is driven. It never goes back: delays and timeouts are stored as times, and would be late if the machine's
// clock were set back. It follows a machine's clock that is set forward. Its fields belong to the goroutine of Drive.
type clock struct {
	wall  func() time.Time
	start time.Time // with a monotonic clock reading
	base  time.Time // the wall clock at began, corrected if the clock was set forward
}

func newClock(wall func() time.Time) *clock {
	return &clock{wall: wall, start: time.Now(), base: wall().Round(0)}
}

func (c *clock) now() time.Time {
	passed := time.Since(c.start)
	if wall := c.wall().Round(0); wall.After(c.base.Add(passed)) {
		c.base = wall.Add(-passed)
	}
	return c.base.Add(passed)
}
