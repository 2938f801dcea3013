package pause

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"scute.dev/internal/sleep"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/transfer"
	"scute.dev/pause"
	"scute.dev/pause/hold"
	"scute.dev/view"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// pauser pauses the objects of one record, and restores their state.
type pauser struct {
	call     *task.Call
	cluster  *access.Cluster
	record   Record
	hold     *hold.Pause // nil if no Cluster API Cluster is selected or recorded
	found    hold.InitialState
	switches []pausedSwitch
}

func newPauser(ctx context.Context, cluster *access.Cluster, c *task.Call, record Record) (*pauser, error) {
	h := &pauser{call: c, cluster: cluster, record: record}
	if len(record.Clusters) > 0 || record.All || len(record.Roots) > 0 {
		graph, err := transfer.NewGraph(ctx, cluster.Kube, mover.Selection{Namespace: record.Namespace, Clusters: record.Clusters, All: record.All})
		if err != nil {
			return nil, err
		}
		h.hold = hold.NewPause(cluster.Kube, graph, hold.RunHolder(record.Holder))
	}
	return h, nil
}

func openRecorded(ctx context.Context, clusters *access.Clusters, c *task.Call, record Record) (*pauser, error) {
	cluster, err := clusters.OpenPinned(ctx, c, record.Cluster)
	if err != nil {
		return nil, err
	}
	return newPauser(ctx, cluster, c, record)
}

// restoreRecord restores the recorded state of objects that still have the Pause's annotation.
func restoreRecord(ctx context.Context, clusters *access.Clusters, c *task.Call, record Record) error {
	h, err := openRecorded(ctx, clusters, c, record)
	if err != nil {
		return classifyError(err)
	}
	return classifyError(h.restore(ctx))
}

// readState reads the state of all objects to pause. For an object that an earlier attempt paused,
// it keeps the state that the earlier attempt recorded.
func (h *pauser) readState(ctx context.Context, w With, earlier Record) error {
	if h.hold != nil {
		found, err := h.hold.Inspect(ctx, earlier.Roots)
		if err != nil {
			return err
		}
		for ref, by := range found.Exclusive {
			return fmt.Errorf("%s: %w by %s", ref, hold.ErrHeld, by.Describe())
		}
		for _, name := range h.record.Clusters {
			if !slices.ContainsFunc(found.Roots, func(r hold.Root) bool { return r.Ref.Name == name }) {
				return fmt.Errorf("with.clusters: Cluster %s/%s does not exist: correct the name or the namespace", h.record.Namespace, name)
			}
		}
		// Objects that an earlier attempt paused must not count as stale.
		if len(earlier.Roots) > 0 {
			found.Stale = earlier.Stale
		}
		h.found, h.record.Roots, h.record.Stale = found, found.Roots, found.Stale
	}
	for _, was := range earlier.Roots {
		if !slices.ContainsFunc(h.record.Roots, func(r hold.Root) bool { return r.Ref == was.Ref }) {
			h.record.Roots = append(h.record.Roots, was) // the object is no longer selected, but must still be restored
		}
	}
	selected, err := selectedSwitches(ctx, h.cluster, h.call, w, h.record.Namespace)
	if err != nil {
		return err
	}
	for _, s := range selected {
		s, err := h.readSwitch(ctx, s, earlier.Switches)
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

// set pauses the objects that readState found, and waits until all of them have acknowledged the
// pause.
func (h *pauser) set(ctx context.Context, limit time.Duration) (output, error) {
	out := output{Record: h.record}
	state := pause.State{Roots: pauseRoots(h.found.Roots), Baseline: h.found.Baseline(), Acks: make(map[object.Ref]pause.Signal)}
	if h.hold != nil {
		if err := h.hold.Set(ctx, state.Roots...); err != nil {
			return out, err
		}
		state.PausedAt = time.Now()
	}
	for _, s := range h.switches {
		if err := h.setSwitch(ctx, s, true); err != nil {
			return out, err
		}
	}
	for _, kind := range h.found.AckKinds {
		limit = max(limit, time.Duration(kind))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	h.call.YieldSlot()
	if err := h.awaitAcks(ctx, &state, &out, limit); err != nil {
		return out, err
	}
	err := h.waitSettled(ctx, limit)
	for _, s := range h.switches {
		out.Settled = append(out.Settled, s.Ref)
	}
	return out, err
}

// setAgain pauses the objects that restore resumed. It omits objects that another client has paused
// or resumed since then.
func (h *pauser) setAgain(ctx context.Context) (err error) {
	if h.hold != nil {
		if h.found, err = h.hold.Inspect(ctx, h.record.Roots); err != nil {
			return err
		}
		recorded := pauseRoots(h.record.Roots)
		h.found.Roots = slices.DeleteFunc(h.found.Roots, func(r hold.Root) bool { return !slices.Contains(recorded, r.Root) })
	}
	if h.switches, err = h.restorableSwitches(ctx); err != nil {
		return err
	}
	_, err = h.set(ctx, acknowledgeTimeout)
	return err
}

// awaitAcks waits until no acknowledgement is pending and two consecutive evaluations found the
// same objects.
func (h *pauser) awaitAcks(ctx context.Context, s *pause.State, out *output, limit time.Duration) error {
	if h.hold == nil {
		return nil
	}
	pace := access.NewBackoff()
	for {
		below, look, err := h.hold.Evaluate(ctx, s)
		if err == nil {
			if root, lifted := s.FindUnpaused(below); lifted {
				err = fmt.Errorf("%s: %w", root, hold.ErrUnpaused)
			}
		}
		maps.Copy(s.Acks, look.New)
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case err == nil && look.Stable:
			out.Acknowledged = make(map[pause.Signal]int)
			for _, signal := range s.Acks {
				out.Acknowledged[signal]++
			}
			return nil
		case err == nil && len(look.Pending) > 0:
			h.call.Progress(fmt.Sprintf("waiting until every object has acknowledged the pause: %d have, %d have not: %s",
				len(s.Acks), len(look.Pending), mover.Summary(look.Pending)))
		}
		if sleepErr := sleep.For(ctx, pace.NextBackOff()); sleepErr != nil {
			return fmt.Errorf("not every controller acknowledged the pause within %s: %s: check the controllers of these objects, or raise "+
				"with.acknowledge if they are only slow: %w",
				view.Duration(limit), mover.Summary(look.Pending), sleepErr)
		}
	}
}

// restore restores the recorded state and briefly waits for the controllers to resume.
func (h *pauser) restore(ctx context.Context) error {
	for _, s := range h.record.Switches {
		if err := h.setSwitch(ctx, s, false); err != nil {
			return err
		}
	}
	if h.hold == nil {
		return nil
	}
	if err := h.hold.Restore(ctx, pauseRoots(h.record.Roots)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resumeTimeout)
	defer cancel()
	h.call.YieldSlot()
	pace := access.NewBackoff()
	for {
		asleep, err := h.hold.StillPaused(ctx)
		if err == nil && len(asleep) == 0 {
			return nil
		}
		if err == nil {
			h.call.Progress(fmt.Sprintf("the pause has ended; %d objects are not reconciled yet: %s", len(asleep), mover.Summary(asleep)))
		}
		if sleep.For(ctx, pace.NextBackOff()) != nil {
			return nil // the state is restored; the controllers resume later
		}
	}
}

func pauseRoots(roots []hold.Root) (list []pause.Root) {
	for _, root := range roots {
		list = append(list, root.Root)
	}
	return list
}
