package transfer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

func (t *Transfer) draft(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	w, err := t.readForDraft(ctx, s.Spec)
	if err != nil {
		return nil, err
	}
	found, err := t.evaluate(ctx, s, w)
	if err != nil {
		return nil, err
	}
	if len(found.active) > 0 {
		first := found.active[0]
		return nil, &waitError{
			message: fmt.Sprintf("%d objects acknowledged the pause but no longer report that they are paused; the first is %s: %s", len(found.active),
				first.Ref, first.Reason),
			next: "find out what resumed them",
		}
	}
	if len(found.remediating) > 0 {
		first := found.remediating[0]
		return nil, finalError(t.remediationAdvice(), "a remediation began while the move paused the source: %s: %s", first.Ref, first.Reason)
	}
	if len(found.unfit) > 0 {
		first := found.unfit[0]
		return nil, finalError(first.Remedy+"; then create another Move", "the source changed between the preflight and the pause: %s: %s", first.Field, first.Message)
	}
	return mover.Drafted{Items: found.items, Excluded: found.excluded}, nil
}

// readForDraft returns a snapshot that was read after every object had acknowledged the pause. It
// reuses pausedSnapshot if reading that began less than maxListingAge ago. Changes after the
// snapshot are detected when the copies are created and verified.
func (t *Transfer) readForDraft(ctx context.Context, spec mover.Spec) (*snapshot, error) {
	last := t.pausedSnapshot
	if t.pausedSnapshot = nil; last != nil && time.Since(last.at) < t.maxListingAge() {
		return last, nil
	}
	_, w, err := t.members(ctx, spec, hashed)
	return w, err
}

type survey struct {
	items    []mover.Item
	excluded []mover.ObjectReason
	// active contains objects that acknowledged the pause, but no longer report it.
	active []mover.ObjectReason
	// remediating contains objects whose remediation is in progress. It began after the preflight.
	remediating []mover.ObjectReason
	// unfit contains errors of the preflight's checks that occur only now.
	unfit []mover.Finding
	// deleting contains objects that another client is deleting.
	deleting []mover.ObjectReason
}

func (t *Transfer) evaluate(ctx context.Context, s *mover.State, w *snapshot) (found survey, err error) {
	members := w.members
	if err := checkStillPaused(s, members); err != nil && !s.Spec.DryRun {
		return found, err
	}
	if err := checkNotEmptied(s.Spec, members); err != nil {
		return found, err
	}
	if err := t.hashConfigMaps(ctx, members, w); err != nil {
		return found, err
	}
	found.items, found.excluded = make([]mover.Item, 0, len(members.Objects)), members.Excluded
	for _, f := range slices.Concat(members.Findings, members.AddressFindings, members.InUseFindings) {
		if f.Severity == mover.Error {
			found.unfit = append(found.unfit, f)
		}
	}
	for _, h := range members.Hosted {
		if !slices.Contains(s.Spec.AcceptLoss, h.Ref.GroupKind()) {
			found.unfit = append(found.unfit, mover.Finding{Severity: mover.Error, Field: h.Ref.String(), Message: h.Reason, Remedy: keepAdvice(h.Ref)})
		}
	}
	for _, m := range members.Objects {
		found.items = append(found.items, mover.ItemOf(m, w.hashes[m.Ref]))
		found.unfit = append(append(found.unfit, unfitFindings(m)...), inProgressFindings(m)...)
		if m.Deleting && m.KeepReason == "" {
			found.deleting = append(found.deleting, mover.ObjectReason{Ref: m.Ref, Reason: "it is being deleted at the source"})
		}
		if why := remediationText(m); why != "" && m.KeepReason == "" {
			found.remediating = append(found.remediating, mover.ObjectReason{Ref: m.Ref, Reason: why})
		}
		if how, acked := s.Acks[m.Ref]; acked && m.KeepReason == "" {
			if why := pause.InvalidReason(how, m.Observed); why != "" {
				found.active = append(found.active, mover.ObjectReason{Ref: m.Ref, Reason: why})
			}
		}
	}
	return found, nil
}

// checkNotEmptied returns an error if a move has begun to delete at the source. A plan made now
// would omit objects that exist only on the target, and a rollback would delete their owners.
func checkNotEmptied(spec mover.Spec, members mover.Members) error {
	var found []mover.ObjectReason
	for _, m := range members.Objects {
		switch {
		case m.KeepReason != "":
		case m.Released:
			found = append(found, mover.ObjectReason{Ref: m.Ref, Reason: "a move has removed its finalizers at the source to delete it"})
		case m.Emptying:
			found = append(found, mover.ObjectReason{Ref: m.Ref, Reason: "its dependents are being deleted"})
		}
	}
	return strandedError(found, "a move has started to delete at the source, but the event log does not record it", keepLogAdvice(spec))
}

// hashConfigMaps adds the hashes of the ConfigMaps that move to the snapshot. It reads them one by
// one, because a namespace may contain many others.
func (t *Transfer) hashConfigMaps(ctx context.Context, members mover.Members, w *snapshot) error {
	var refs []object.Ref
	for _, m := range members.Objects {
		if m.Ref.GroupKind() == "ConfigMap" {
			refs = append(refs, m.Ref)
		}
	}
	return kube.ForEach(ctx, t.workers(), refs, func(ctx context.Context, ref object.Ref) error {
		u, err := t.Source.Find(ctx, t.sourceTypes["ConfigMap"], ref)
		if u == nil {
			return err
		}
		sum, err := mover.ContentHash(u)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.hashes[ref] = sum
		return err
	})
}

func drift(plan, now []mover.Item) []mover.ObjectReason {
	var found []mover.ObjectReason
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
			why = "it was created at the source after the plan was recorded"
		case was.UID != item.UID:
			why = "it was deleted at the source and recreated with the same name"
		case was.Hash != item.Hash, isSecret(item.Ref) && was.ResourceVersion != item.ResourceVersion:
			why = "it changed at the source after the plan was recorded"
		}
		if why != "" && item.KeepReason == "" {
			found = append(found, mover.ObjectReason{Ref: item.Ref, Reason: why})
		}
	}
	for _, item := range plan {
		if _, gone := planned[item.Ref]; gone && item.KeepReason == "" {
			found = append(found, mover.ObjectReason{Ref: item.Ref, Reason: "it was deleted at the source after the plan was recorded"})
		}
	}
	return found
}

func isSecret(ref object.Ref) bool { return ref.Group == "" && ref.Kind == "Secret" }

func rootsOf(s *mover.State) map[object.Ref]pause.Root {
	roots := make(map[object.Ref]pause.Root, len(s.Roots))
	for _, r := range s.Roots {
		roots[r.Ref] = r
	}
	return roots
}
