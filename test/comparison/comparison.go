package comparison

import (
	"fmt"
	"time"
)

// Outcome is the result for a cluster.
type Outcome struct {
	// End describes how it ended. It is empty if the cluster did not return to its desired machines, all of them
	// healthy. Missing is then what was missing.
	End     string
	Missing string
	// After is how long it took, or how long the test waited.
	After time.Duration
	// Members is the lowest number of etcd members that answered, or None if etcd is external.
	Members int
	// Unserved means that no API server answered at some time, or no majority of etcd.
	Unserved bool
	// Lost is the number of healthy machines that were deleted without need.
	Lost int
	// Touched means that machines were changed although none may be.
	Touched bool
}

// None is the number of members of an external etcd.
const None = -1

// Case is one fault, and the result of two systems.
type Case struct {
	Name string
	// Row is the row of the findings that describes the fault.
	Row          string
	Plain, Scute Outcome
	// Kept are the cells of the page for a case that has not run, otherwise "".
	Kept string
}

// Worse returns in which respects scute's result is worse than the plain one. It does not compare the duration: see
// Slower.
func (c *Case) Worse() []string {
	var worse []string
	add := func(is bool, format string, values ...any) {
		if is {
			worse = append(worse, fmt.Sprintf(format, values...))
		}
	}
	p, s := &c.Plain, &c.Scute
	add(p.End != "" && s.End == "", "it does not end well: %s", s.Missing)
	add(s.Lost > p.Lost, "%d healthy machines are lost, not %d", s.Lost, p.Lost)
	add(s.Unserved && !p.Unserved, "the API server was unavailable")
	add(s.Touched && !p.Touched, "machines were touched that must be left alone")
	// A system that does nothing loses no member either. In that case it suffices if the majority remains.
	add(p.End != "" && s.Members < p.Members, "%d members answered at some time, not %d", s.Members, p.Members)
	return worse
}

// Slower returns by how much scute took longer than the plain system and one turn, or "" if it did not.
func (c *Case) Slower(turn time.Duration) string {
	if more := c.Scute.After - c.Plain.After; c.Plain.End != "" && c.Scute.End != "" && more > turn {
		return fmt.Sprintf("it took %s longer than without scute, which is more than one turn (%s)", more.Round(time.Second), turn)
	}
	return ""
}
