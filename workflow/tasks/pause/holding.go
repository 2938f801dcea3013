package pause

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"scute.dev/internal/redact"
	"scute.dev/internal/timespan"
	"scute.dev/mover/transfer"
	"scute.dev/pause"
	"scute.dev/pause/hold"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// holding sets and lifts the pause of one record.
type holding struct {
	call    *task.Call
	cluster *access.Cluster
	record  Record
	hold    *hold.Pause // nil when no Cluster API Cluster is selected, and none was
	found   hold.Found
	// switches are those of the record that must be turned on.
	switches []pausedSwitch
}

func newHolding(ctx context.Context, cluster *access.Cluster, c *task.Call, record Record) (*holding, error) {
	h := &holding{call: c, cluster: cluster, record: record}
	if len(record.Clusters) > 0 || record.All || len(record.Roots) > 0 {
		graph, err := transfer.NewGraph(ctx, cluster.Kube, record.selection())
		if err != nil {
			return nil, err
		}
		h.hold = hold.NewPause(cluster.Kube, graph, hold.ByRun(record.Holder))
	}
	return h, nil
}

// look observes everything that must be paused. What an earlier attempt recorded of what it paused still holds.
func (h *holding) look(ctx context.Context, w With, earlier Record) error {
	if h.hold != nil {
		found, err := h.hold.Look(ctx, earlier.roots())
		if err != nil {
			return err
		}
		for ref, by := range found.Alone {
			return fmt.Errorf("%s: %w by %s", ref, hold.ErrHeld, by.Named())
		}
		for _, name := range h.record.Clusters {
			if !slices.ContainsFunc(found.Roots, func(r pause.Root) bool { return r.Ref.Name == name }) {
				return fmt.Errorf("with.clusters: Cluster %s/%s does not exist: correct the name or the namespace", h.record.Namespace, name)
			}
		}
		for _, root := range found.Roots {
			h.record.Roots = append(h.record.Roots, pausedRoot{Root: root, By: found.Owners[root.Ref]})
		}
		for i := range h.record.Roots {
			root := &h.record.Roots[i]
			for _, was := range earlier.Roots {
				if was.Ref == root.Ref && was.UID == root.UID && was.Found == root.Found && root.By == "" {
					root.By = was.By
				}
			}
		}
		// What this pause has stilled since is no stale word.
		if len(earlier.Roots) > 0 {
			found.Stale = earlier.Stale
		}
		h.found, h.record.Stale = found, found.Stale
	}
	for _, was := range earlier.Roots {
		if !slices.ContainsFunc(h.record.Roots, func(r pausedRoot) bool { return r.Ref == was.Ref }) {
			h.record.Roots = append(h.record.Roots, was) // selected no more, and still to be given back
		}
	}
	refs, err := switchRefs(ctx, h.cluster, h.call, w, h.record.Namespace)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		s, err := h.lookSwitch(ctx, ref, earlier.Switches)
		if err != nil {
			return err
		}
		h.switches = append(h.switches, s)
	}
	h.record.Switches = slices.Clone(h.switches)
	for _, was := range earlier.Switches {
		if !slices.ContainsFunc(h.switches, func(s pausedSwitch) bool { return s.Ref == was.Ref }) {
			h.record.Switches = append(h.record.Switches, was)
		}
	}
	return nil
}

// set pauses what was looked at and waits until all is at rest.
func (h *holding) set(ctx context.Context, limit time.Duration) (output, error) {
	out := output{Record: h.record}
	if h.hold != nil {
		if err := h.hold.Set(ctx, h.found); err != nil {
			return out, err
		}
	}
	for _, s := range h.switches {
		if err := h.setSwitch(ctx, s); err != nil {
			return out, err
		}
	}
	for _, kind := range h.found.AckKinds {
		limit = max(limit, kind)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	h.call.OnlyWaits()
	if err := h.acknowledged(ctx, &out, limit); err != nil {
		return out, err
	}
	err := h.settled(ctx, limit)
	for _, s := range h.switches {
		out.Settled = append(out.Settled, s.Ref)
	}
	return out, err
}

// acknowledged waits until every object below the clusters has said that it is at rest.
func (h *holding) acknowledged(ctx context.Context, out *output, limit time.Duration) error {
	if h.hold == nil {
		return nil
	}
	pace := access.NewPace()
	for {
		how, pending, done, err := h.hold.Acknowledged(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case err == nil && done:
			out.Acknowledged = make(map[pause.Signal]int)
			for _, signal := range how {
				out.Acknowledged[signal]++
			}
			return nil
		case err == nil && len(pending) > 0:
			h.call.Progress(fmt.Sprintf("waiting until every object is at rest: %d have acknowledged the pause, %d have not: %s", len(how), len(pending), naming(pending)))
		}
		if sleepErr := access.Sleep(ctx, pace.NextBackOff()); sleepErr != nil {
			return fmt.Errorf("not every controller acknowledged the pause within %s: %s: look at the controllers of these objects, or raise with.acknowledge if they are only slow: %w",
				timespan.Text(limit), naming(pending), sleepErr)
		}
	}
}

// restore writes back what was recorded and gives the controllers a moment to wake.
func (h *holding) restore(ctx context.Context) error {
	for _, s := range h.record.Switches {
		if err := h.restoreSwitch(ctx, s); err != nil {
			return err
		}
	}
	if h.hold == nil {
		return nil
	}
	if err := h.hold.Restore(ctx, h.record.roots()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, awake)
	defer cancel()
	h.call.OnlyWaits()
	pace := access.NewPace()
	for {
		asleep, err := h.hold.Asleep(ctx)
		if err == nil && len(asleep) == 0 {
			return nil
		}
		if err == nil {
			h.call.Progress(fmt.Sprintf("the pause is lifted; %d objects have still to wake: %s", len(asleep), naming(asleep)))
		}
		if access.Sleep(ctx, pace.NextBackOff()) != nil {
			return nil // what was recorded is back; the controllers wake in their own time
		}
	}
}

// naming says what is waited for: the first few.
func naming(list []pause.Wait) string {
	const named = 5
	var said []string
	for _, w := range list[:min(len(list), named)] {
		said = append(said, w.Ref.String()+" ("+redact.Message(w.Why)+")")
	}
	if len(list) > named {
		said = append(said, fmt.Sprintf("and %d more", len(list)-named))
	}
	return strings.Join(said, "; ")
}
