package comparison

import (
	"fmt"
	"time"
)

// Outcome is what became of a cluster.
type Outcome struct {
	// End says how it ended. It is empty when the cluster did not come back to the machines that it is to have, all of them
	// healthy; Missing says then what was missing.
	End     string
	Missing string
	// After is how long it took, or how long was waited.
	After time.Duration
	// Members is the lowest number of etcd members that answered, None where they are not the cluster's.
	Members int
	// Unserved: at some time no API server answered, or no majority of etcd.
	Unserved bool
	// Lost is the number of healthy machines that are gone and need not be.
	Lost int
	// Touched: something was done to the machines where all of them must be left alone.
	Touched bool
}

// None is the number of members of an etcd that is not the cluster's.
const None = -1

// Case is one fault, and what two systems made of it.
type Case struct {
	Name string
	// Row of the findings that it stems from.
	Row          string
	Plain, Scute Outcome
	// Kept are the cells of the page of a case that has not run; "" for one that has.
	Kept string
}

// Worse says in what scute's end is worse than the plain one; nothing if in nothing. How long it took is Slower's.
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
	// A system that does nothing loses no member either: then it is enough that the majority is left.
	add(p.End != "" && s.Members < p.Members, "%d members answered at some time, not %d", s.Members, p.Members)
	return worse
}

// Slower says by how much scute took longer than the plain system and one turn; nothing if it did not.
func (c *Case) Slower(turn time.Duration) string {
	if more := c.Scute.After - c.Plain.After; c.Plain.End != "" && c.Scute.End != "" && more > turn {
		return fmt.Sprintf("it took %s longer than without scute, which is more than one turn (%s)", more.Round(time.Second), turn)
	}
	return ""
}
