package transfer

import (
	"context"
	"maps"
	"slices"
	"time"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

// Hold is an acknowledged pause for its own sake: what a move does with its source before the first object is created,
// and how it puts it back. It pauses Clusters alone: their classes may go on. It is used by one goroutine at a time.
type Hold struct {
	transfer Transfer
	state    mover.State
}

// NewHold prepares a pause of clusters of a namespace. holder is what the mark on the roots says.
func NewHold(c *kube.Cluster, holder string, sel mover.Selection) *Hold {
	return &Hold{
		transfer: Transfer{ID: holder, Source: c, pausing: true},
		state:    mover.State{Spec: mover.Spec{Namespace: sel.Namespace, Clusters: sel.Clusters, All: sel.All}},
	}
}

// Found is what one look before the pause shows.
type Found struct {
	// Roots are all that is to be paused; each with the state that it had before this holder's pause.
	Roots []pause.Root
	// Stale are the objects that call themselves paused while nothing holds them: their word counts for nothing later.
	Stale map[object.Ref]pause.Baseline
	// Owners say who had set the pauses that were found.
	Owners map[object.Ref]string
}

// Look observes what is to be paused. known are the roots of an earlier look: what it says of a root that bears the
// holder's mark still holds, because what the root says now is the holder's own doing.
func (h *Hold) Look(ctx context.Context, known []pause.Root) (Found, error) {
	f := Found{Stale: make(map[object.Ref]pause.Baseline), Owners: make(map[object.Ref]string)}
	t := &h.transfer
	if err := t.connect(ctx, h.state.Spec, "", false); err != nil {
		return f, err
	}
	members, _, err := t.members(ctx, h.state.Spec, false)
	if err != nil {
		return f, err
	}
	paused := make(map[string]bool)
	for _, m := range members.Objects {
		if !pause.IsCluster(m.Ref) {
			continue
		}
		root, owner, err := h.root(ctx, m.Ref, known)
		if err != nil {
			return f, err
		}
		f.Roots = append(f.Roots, root)
		if root.Found {
			f.Owners[m.Ref], paused[m.Ref.Name] = owner, true
		}
	}
	for _, m := range members.Objects {
		if m.Paused == object.True && !held(m, paused) {
			f.Stale[m.Ref] = pause.Baseline{UID: m.UID, Paused: m.Paused}
		}
	}
	return f, nil
}

// root reads one Cluster, with the fields' owners.
func (h *Hold) root(ctx context.Context, ref object.Ref, known []pause.Root) (root pause.Root, owner string, err error) {
	t := &h.transfer
	typ, err := t.kind(ref)
	if err != nil {
		return root, "", err
	}
	u, err := t.Source.Get(ctx, typ, ref.Namespace, ref.Name)
	if err != nil {
		return root, "", err
	}
	root = pause.RootOf(object.Observe(u))
	if i := slices.IndexFunc(known, func(r pause.Root) bool { return r.Ref == ref && r.UID == root.UID }); i >= 0 && hold.Holder(u) == t.mark() {
		return known[i], "", nil
	}
	return root, hold.Owner(u, "f:spec", "f:paused"), nil
}

// Set pauses the roots and marks them.
func (h *Hold) Set(ctx context.Context, f Found) error {
	if err := h.transfer.connect(ctx, h.state.Spec, "", false); err != nil {
		return err
	}
	h.state.Roots, h.state.Baseline = f.Roots, maps.Clone(f.Stale)
	if err := h.heldObjects(ctx); err != nil {
		return err
	}
	_, err := h.transfer.setPause(ctx, &h.state)
	h.state.PausedAt = time.Now()
	return err
}

// Acknowledged takes one look at everything below the roots. It is done when nothing is pending and two looks in a row
// saw the same objects.
func (h *Hold) Acknowledged(ctx context.Context) (how map[object.Ref]pause.Signal, pending []mover.Wait, done bool, err error) {
	out, err := h.transfer.awaitAcks(ctx, &h.state)
	if err != nil {
		return nil, nil, false, err
	}
	seen, _ := out.(mover.AcksSeen)
	if h.state.Acks == nil {
		h.state.Acks = make(map[object.Ref]pause.Signal)
	}
	maps.Copy(h.state.Acks, seen.New)
	return h.state.Acks, seen.Pending, seen.Stable, nil
}

// heldObjects tells the baseline which objects a user's own pause holds.
func (h *Hold) heldObjects(ctx context.Context) error {
	paused := make(map[string]bool)
	for _, root := range h.state.Roots {
		if root.Found {
			paused[root.Ref.Name] = true
		}
	}
	members, _, err := h.transfer.members(ctx, h.state.Spec, false)
	if err != nil {
		return err
	}
	if h.state.Baseline == nil {
		h.state.Baseline = make(map[object.Ref]pause.Baseline)
	}
	for _, m := range members.Objects {
		if _, known := h.state.Baseline[m.Ref]; !known && held(m, paused) {
			h.state.Baseline[m.Ref] = pause.Baseline{UID: m.UID, Paused: m.Paused, Held: true}
		}
	}
	return nil
}

// Restore puts back the pause states that were found and wakes what acknowledged the pause. A root without the holder's
// mark is left alone.
func (h *Hold) Restore(ctx context.Context, roots []pause.Root) error {
	h.state.Roots = roots
	if err := h.transfer.connect(ctx, h.state.Spec, "", false); err != nil {
		return err
	}
	_, err := h.transfer.restoreSource(ctx, &h.state)
	return err
}

// Asleep are objects below the roots that still call themselves paused while nothing holds them any more. The look
// wakes the Machines among them, which do not watch their Cluster's pause.
func (h *Hold) Asleep(ctx context.Context) ([]mover.Wait, error) {
	t := &h.transfer
	members, _, err := t.members(ctx, h.state.Spec, false)
	if err != nil {
		return nil, err
	}
	clusters := pausedClusters(members.Objects)
	var asleep []mover.Wait
	var wake []object.Ref
	for _, m := range members.Objects {
		if m.Paused == object.True && !held(m, clusters) {
			asleep = append(asleep, mover.Wait{Ref: m.Ref, Why: "condition Paused is still True"})
			wake = append(wake, m.Ref)
		}
	}
	t.touch(ctx, t.Source, t.types, wake)
	return asleep, nil
}
