package transfer

import (
	"context"
	"slices"
	"time"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

func (t *Transfer) baseline(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	if err := t.refreshAnnotations(ctx); err != nil {
		return nil, err
	}
	members, _, err := t.members(ctx, s.Spec, nonEmptyKinds)
	if err != nil {
		return nil, err
	}
	if t.hasOwnAnnotation(members) {
		return mover.LogLost{Log: t.log}, nil
	}
	out := mover.BaselineRead{Objects: make(map[object.Ref]pause.Baseline)}
	subjects := subjects(members)
	out.AckKinds, _ = t.ackTimeouts(subjects)
	users := pause.PausedClustersOf(subjects)
	for i, m := range members.Objects {
		if m.KeepReason != "" {
			continue // it stays at the source, so its controllers may continue
		}
		if pause.IsRoot(m.Ref) && m.MoveID != "" {
			return nil, finalError("wait until it has finished, then create another Move", "%s is held by another move: %s", m.Ref, holderOf(m))
		}
		out.Objects[m.Ref] = pause.Baseline{UID: m.UID, Paused: m.Paused, AlreadyPaused: users.IsPaused(subjects[i])}
		if pause.IsRoot(m.Ref) {
			out.Roots = append(out.Roots, pause.RootOf(m.Observed))
		}
	}
	if len(out.Roots) == 0 {
		return nil, finalError("check spec.selection: the selected objects existed a moment ago", "no selected objects are left")
	}
	return out, nil
}

// ackTimeouts returns the acknowledgement timeouts that the CustomResourceDefinitions of the moving
// kinds declare, and an error for each timeout that cannot be parsed.
func (t *Transfer) ackTimeouts(subjects []pause.Subject) (limits map[string]mover.Duration, wrong []error) {
	moves := slices.DeleteFunc(slices.Clone(subjects), func(o pause.Subject) bool { return o.Exempt })
	return hold.AckLimits(moves, t.kind)
}

// checkStillPaused returns an error if another client, for example a GitOps tool, has removed the
// pause of a root or deleted the root.
func checkStillPaused(s *mover.State, members mover.Members) error {
	if root, lifted := s.FindUnpaused(subjects(members)); lifted {
		return finalError("find out what resets the pause (a GitOps tool?), suspend it during the move, then create another Move",
			"another client has unpaused or deleted %s", root)
	}
	return nil
}

func subjects(members mover.Members) []pause.Subject {
	list := make([]pause.Subject, len(members.Objects))
	for i, m := range members.Objects {
		list[i] = pause.Subject{Observed: m.Observed, Cluster: m.OwningCluster, Exempt: m.KeepReason != ""}
	}
	return list
}

func (t *Transfer) writer() hold.Writer {
	return hold.Writer{Cluster: t.Source, Kind: t.kind, Workers: t.workers(), TouchValue: t.ID}
}

// targetWriter uses the version that was planned for each copy.
func (t *Transfer) targetWriter(items []mover.Item) hold.Writer {
	versions := make(map[object.Ref]string, len(items))
	for _, item := range items {
		versions[item.Ref] = item.Version
	}
	return hold.Writer{
		Cluster: t.target, Workers: t.workers(), TouchValue: t.ID, Kind: func(ref object.Ref) (kube.Type, error) { return t.typeOf(t.target, ref, versions[ref]) },
	}
}

func (t *Transfer) kind(ref object.Ref) (kube.Type, error) {
	typ, ok := t.sourceTypes[ref.GroupKind()]
	if !ok {
		return typ, finalError("restore the CustomResourceDefinition of this kind", "the source no longer serves %s", ref.GroupKind())
	}
	return typ, nil
}

// awaitAcks reads which objects have acknowledged the pause. It lists all objects each time,
// because objects created after the pause must acknowledge it too. Kinds that had no objects are
// listed again only once nothing is pending. Only such a complete listing may end the wait.
func (t *Transfer) awaitAcks(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	depth := nonEmptyKinds
	if t.allAcked {
		depth = hashed // because draft may use this listing for the plan
	}
	if err := t.refreshAnnotations(ctx); err != nil {
		return nil, err
	}
	members, w, err := t.members(ctx, s.Spec, depth)
	if err != nil {
		return nil, err
	}
	if err := checkStillPaused(s, members); err != nil {
		return nil, err
	}
	look := t.watch.Evaluate(&s.State, subjects(members), w.objects, time.Now())
	t.touches.Touch(ctx, t.writer(), look.Wake)
	t.allAcked = len(look.Pending) == 0
	stable := look.Stable && !w.partial
	if t.pausedSnapshot = nil; stable && depth == hashed {
		t.pausedSnapshot = w
	}
	return mover.AcksRead{New: look.New, Pending: look.Pending, Stable: stable}, nil
}
