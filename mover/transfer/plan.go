package transfer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// draft writes down every object that moves, with its UID, resource version and content hash, owners first.
func (t *Transfer) draft(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	members, w, err := t.draftLook(ctx, s.Spec)
	if err != nil {
		return nil, err
	}
	found, err := t.judge(ctx, s, members, w)
	if err != nil {
		return nil, err
	}
	if len(found.awake) > 0 {
		first := found.awake[0]
		return nil, &waitError{
			what: fmt.Sprintf("%d objects acknowledged the pause and no longer say that they are paused, the first is %s: %s", len(found.awake), first.Ref, first.Why),
			next: "find out what resumed them",
		}
	}
	if len(found.remediating) > 0 {
		first := found.remediating[0]
		return nil, final(t.remediationsNext(), "a remediation began while the move paused the source: %s: %s", first.Ref, first.Why)
	}
	if len(found.unfit) > 0 {
		first := found.unfit[0]
		return nil, final(first.Remedy+"; then create another Move", "the source changed between the preflight and the pause: %s: %s", first.Field, first.Message)
	}
	return mover.Drafted{Items: found.items, Left: found.left}, nil
}

// observation is a snapshot of the source, with what the move means in it.
type observation struct {
	members mover.Members
	world   *snapshot
}

// draftLook is the look that a plan is made from. Every acknowledgement was given in a look before it. The look that showed the source at
// rest is that too, if it began less than momentAfter before and hashed the contents: what changes after it is found when the copies are
// made and verified.
func (t *Transfer) draftLook(ctx context.Context, spec mover.Spec) (mover.Members, *snapshot, error) {
	last := t.atRestIn
	if t.atRestIn = nil; last != nil && time.Since(last.world.at) < t.momentAfter() {
		return last.members, last.world, nil
	}
	return t.members(ctx, spec, hashed)
}

// survey is one look at the source with everything at rest.
type survey struct {
	world *snapshot
	items []mover.Item
	left  []mover.Wait
	// awake are objects whose acknowledgement no longer holds.
	awake []mover.Wait
	// remediating are objects with marks of a remediation, which came after the preflight.
	remediating []mover.Wait
	// unfit are errors that the preflight would have found: what they are about came after it.
	unfit []mover.Finding
	// deleting are objects that somebody deletes.
	deleting []mover.Wait
}

func (t *Transfer) survey(ctx context.Context, s *mover.State) (found survey, err error) {
	members, w, err := t.members(ctx, s.Spec, hashed)
	if err != nil {
		return found, err
	}
	return t.judge(ctx, s, members, w)
}

// judge says what a look at the source means for a move.
func (t *Transfer) judge(ctx context.Context, s *mover.State, members mover.Members, w *snapshot) (found survey, err error) {
	if err := stillHeld(s, members); err != nil && !s.Spec.DryRun {
		return found, err
	}
	if err := unemptied(s.Spec, members); err != nil {
		return found, err
	}
	if err := t.hashConfigMaps(ctx, members, w); err != nil {
		return found, err
	}
	found.world = w
	found.items, found.left = make([]mover.Item, 0, len(members.Objects)), members.Left
	for _, f := range slices.Concat(members.Findings, members.Addresses, members.Taken) {
		if f.Severity == mover.Error {
			found.unfit = append(found.unfit, f)
		}
	}
	for _, h := range members.Hosted {
		if !slices.Contains(s.Spec.AcceptLoss, h.Ref.GroupKind()) {
			found.unfit = append(found.unfit, mover.Finding{Severity: mover.Error, Field: h.Ref.String(), Message: h.Why, Remedy: stay(h.Ref)})
		}
	}
	for _, m := range members.Objects {
		found.items = append(found.items, mover.ItemOf(m, w.hashes[m.Ref]))
		found.unfit = append(append(found.unfit, unfit(m)...), inProgress(m)...)
		if m.Deleting && m.Keep == "" {
			found.deleting = append(found.deleting, mover.Wait{Ref: m.Ref, Why: "it is being deleted at the source"})
		}
		if why := remediating(m); why != "" && m.Keep == "" {
			found.remediating = append(found.remediating, mover.Wait{Ref: m.Ref, Why: why})
		}
		if how, acked := s.Acks[m.Ref]; acked && m.Keep == "" {
			if why := pause.Broken(how, m.Observed); why != "" {
				found.awake = append(found.awake, mover.Wait{Ref: m.Ref, Why: why})
			}
		}
	}
	return found, nil
}

// unemptied makes sure that the source is complete. A plan of an incomplete source would omit the objects that only the
// target has, and a rollback would remove their owners.
func unemptied(spec mover.Spec, members mover.Members) error {
	var found []mover.Wait
	for _, m := range members.Objects {
		switch {
		case m.Keep != "":
		case m.Released:
			found = append(found, mover.Wait{Ref: m.Ref, Why: "it was released at the source to be deleted"})
		case m.Emptying:
			found = append(found, mover.Wait{Ref: m.Ref, Why: "what belongs to it is being deleted"})
		}
	}
	return strand(found, "a move has begun to empty the source, and the event log does not know of it", keepLog(spec))
}

// hashConfigMaps reads the few ConfigMaps that move: they are listed by metadata only, because a namespace may hold
// many that have nothing to do with it.
func (t *Transfer) hashConfigMaps(ctx context.Context, members mover.Members, w *snapshot) error {
	var refs []object.Ref
	for _, m := range members.Objects {
		if m.Ref.GroupKind() == "ConfigMap" {
			refs = append(refs, m.Ref)
		}
	}
	sums := make([]string, len(refs))
	err := parallel(ctx, t.workers(), indices(refs), func(ctx context.Context, i int) error {
		u, err := t.Source.Get(ctx, t.types["ConfigMap"], refs[i].Namespace, refs[i].Name)
		if err == nil {
			sums[i], err = mover.ContentHash(u)
		}
		if gone(err) {
			return nil
		}
		return err
	})
	for i, ref := range refs {
		w.hashes[ref] = sums[i]
	}
	return err
}

// drift compares the source as it is with the plan, and names what changed, came or went.
func drift(plan, now []mover.Item) []mover.Wait {
	var found []mover.Wait
	planned := make(map[object.Ref]mover.Item, len(plan))
	for _, item := range plan {
		planned[item.Ref] = item
	}
	for _, item := range now {
		was, ok := planned[item.Ref]
		delete(planned, item.Ref)
		why := ""
		switch {
		case !ok:
			why = "it appeared at the source after the plan was made"
		case was.UID != item.UID:
			why = "it was deleted at the source, and another object of its name was made"
		case was.Hash != item.Hash, isSecret(item.Ref) && was.ResourceVersion != item.ResourceVersion:
			why = "it changed at the source after the plan was made"
		}
		if why != "" && item.Keep == "" {
			found = append(found, mover.Wait{Ref: item.Ref, Why: why})
		}
	}
	for _, item := range plan {
		if _, gone := planned[item.Ref]; gone && item.Keep == "" {
			found = append(found, mover.Wait{Ref: item.Ref, Why: "it went away at the source after the plan was made"})
		}
	}
	return found
}

func isSecret(ref object.Ref) bool { return ref.Group == "" && ref.Kind == "Secret" }

// rootsOf are the recorded roots among the plan, by reference.
func rootsOf(s *mover.State) map[object.Ref]pause.Root {
	roots := make(map[object.Ref]pause.Root, len(s.Roots))
	for _, r := range s.Roots {
		roots[r.Ref] = r
	}
	return roots
}
