package retention

import (
	"fmt"
	"slices"

	"scute.dev/eventlog"
	"scute.dev/internal/projection"
	"scute.dev/internal/usage"
	"scute.dev/projector"
)

// Judge is a view of a log up to the commit that opens an epoch. Its zero value is not ready; see NewJudge.
type Judge struct {
	view *projection.View
	// aside are those that this program cannot follow, and open those that the view has not forgotten; nil until somebody asks.
	aside, open map[eventlog.Aggregate]bool
}

// NewJudge makes a judge that knows of no commit.
func NewJudge() *Judge {
	return &Judge{view: projection.New(usage.Limits{}), aside: make(map[eventlog.Aggregate]bool)}
}

// Apply takes the next commit in. What it cannot follow stays.
func (j *Judge) Apply(r eventlog.Record) error {
	j.open = nil
	err := j.view.Apply(r)
	if err != nil {
		j.aside[r.Aggregate] = true
	}
	return err
}

// Stays says that the commits of an aggregate stay: it has not ended, or this cannot be told. That is everything that the view has not forgotten, what
// this program cannot read, what the log says of itself, and what is of no kind that it knows.
func (j *Judge) Stays(a eventlog.Aggregate) bool {
	if !slices.Contains(projection.Kinds(), a.Kind) || j.aside[a] {
		return true
	}
	if j.open == nil {
		open := make(map[eventlog.Aggregate]bool)
		if j.view.Aggregates(func(a eventlog.Aggregate) { open[a] = true }) != nil {
			return true
		}
		j.open = open
	}
	return j.open[a]
}

// Hash is the same for judges whose views have nothing that differs.
func (j *Judge) Hash() (string, error) {
	hash, err := projector.Hash(j.view)
	var aside []string
	for a := range j.aside {
		aside = append(aside, a.String())
	}
	slices.Sort(aside)
	return fmt.Sprintf("%s %q", hash, aside), err
}
