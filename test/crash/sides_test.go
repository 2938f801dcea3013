package crash

import (
	"context"
	"slices"
	"time"

	"scute.dev/test/cloud"
	"scute.dev/test/comparison"
	"scute.dev/test/inventory"
)

// clusterName and className are the names of the moved cluster and of its class.
const (
	clusterName = "tiny"
	className   = "in-memory"
)

// crashed is a cluster whose move is killed. It has its own namespace.
type crashed struct {
	namespace string
	before    []string // names of the objects before the move
	mark      cloud.Mark
}

func newCrashed(namespace string) *crashed { return &crashed{namespace: namespace} }

// remember records the objects before the move.
func (c *crashed) remember(ctx context.Context) error {
	source, err := inventory.Take(ctx, shared.blue.Side, c.namespace)
	c.before, c.mark = source.Names, shared.bed.Cloud().Mark()
	return err
}

// sides returns what the two management clusters have of the cluster now.
func (c *crashed) sides(ctx context.Context) (s comparison.Sides, err error) {
	source, err := inventory.Take(ctx, shared.blue.Side, c.namespace)
	if err != nil {
		return s, err
	}
	target, err := inventory.Take(ctx, shared.green.Side, c.namespace)
	if err != nil {
		return s, err
	}
	s = comparison.Sides{
		Source: len(source.Names), Target: len(target.Names),
		SourcePaused: len(source.Touched) > 0, TargetPaused: len(target.Touched) > 0,
	}
	have := slices.Concat(source.Names, target.Names)
	slices.Sort(have)
	have = slices.Compact(have)
	s.Missing = count(c.before, have)
	s.New = count(have, c.before)
	return s, nil
}

// count returns the number of names that are in one list but not in the other.
func count(of, in []string) int {
	n := 0
	for _, name := range of {
		if !slices.Contains(in, name) {
			n++
		}
	}
	return n
}

// settled polls the result until the move has completed without damage, or until the time is up.
func (c *crashed) settled(ctx context.Context, e *comparison.Ending, within time.Duration) (comparison.Sides, error) {
	until := time.Now().Add(within)
	for {
		var err error
		if e.End, err = c.sides(ctx); err != nil {
			return e.End, err
		}
		if e.Made, e.Removed, err = c.machines(); err != nil {
			return e.End, err
		}
		if e.Whole() || time.Now().After(until) {
			return e.End, nil
		}
		if err := look(ctx); err != nil {
			return e.End, err
		}
	}
}

// machines returns how many machines were created and deleted in the cloud since the move began.
func (c *crashed) machines() (made, removed int, err error) {
	journal, err := shared.bed.Cloud().Since(c.mark)
	if err != nil {
		return 0, 0, err
	}
	for _, w := range journal.Replacements() {
		if w.Cluster != c.namespace+"/"+clusterName || w.Kind != cloud.MachineKind {
			continue
		}
		if w.Verb == cloud.Create {
			made++
		} else {
			removed++
		}
	}
	return made, removed, nil
}

// look waits until the next poll.
func look(ctx context.Context) error {
	select {
	case <-time.After(500 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
