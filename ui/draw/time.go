package draw

import "time"

// Axis is a time axis from left to right.
type Axis struct {
	Begin, End time.Time
	Width      int
}

// X returns the position of a time.
func (a Axis) X(t time.Time) int {
	all := a.End.Sub(a.Begin)
	if all <= 0 {
		return 0
	}
	x := int(float64(a.Width) * float64(t.Sub(a.Begin)) / float64(all))
	return min(max(x, 0), a.Width)
}

// Bar returns the position and width of a time span. A minimum width keeps it visible.
func (a Axis) Bar(begin, end time.Time) (x, width int) {
	const least = 3
	x = a.X(begin)
	width = max(a.X(end)-x, least)
	return min(x, a.Width-least), width
}

// Tick is a mark on the axis.
type Tick struct {
	X     int
	After time.Duration
}

// Ticks returns at most `most` ticks. Their distances from the beginning of the axis are round.
func (a Axis) Ticks(most int) (ticks []Tick) {
	step := roundStep(a.End.Sub(a.Begin), most)
	if step <= 0 {
		return nil
	}
	for after := time.Duration(0); after <= a.End.Sub(a.Begin); after += step {
		ticks = append(ticks, Tick{X: a.X(a.Begin.Add(after)), After: after})
	}
	return ticks
}

// roundStep returns the smallest round step that fits fewer than `most` times into the duration
// all.
func roundStep(all time.Duration, most int) time.Duration {
	for _, step := range []time.Duration{
		time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
		100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second,
		10 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
		30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	} {
		if all/step < time.Duration(most) {
			return step
		}
	}
	return all / time.Duration(most)
}
