package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

// touchAfter is how long an object may be silent before its controller is woken by a write, and touchEvery how often.
const (
	touchAfter = 500 * time.Millisecond
	touchEvery = 15 * time.Second
)

// baseline records what every object says of being paused, just before the pause, and what will be paused.
func (t *Transfer) baseline(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	members, _, err := t.members(ctx, s.Spec, false)
	if err != nil {
		return nil, err
	}
	if t.ownMark(members) {
		return mover.OwnMarkSeen{}, nil
	}
	out := mover.BaselineSeen{Objects: make(map[object.Ref]pause.Baseline)}
	clusters := pausedClusters(members.Objects)
	for _, m := range members.Objects {
		if m.Keep != "" {
			continue // it stays, so its controllers may go on
		}
		if pause.IsRoot(m.Ref) && m.Mark != "" {
			return nil, final("wait until it has come to its end, then make another Move", "%s is held by another move: %s", m.Ref, markOf(m))
		}
		out.Objects[m.Ref] = pause.Baseline{UID: m.UID, Paused: m.Paused, Held: held(m, clusters)}
		if pause.IsRoot(m.Ref) {
			out.Roots = append(out.Roots, pause.RootOf(m.Observed))
		}
	}
	if len(out.Roots) == 0 {
		return nil, final("check spec.selection: what it named was there a moment ago", "nothing is left to move")
	}
	return out, nil
}

func (t *Transfer) setPause(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	err := parallel(ctx, t.workers(), s.Roots, func(ctx context.Context, root pause.Root) error {
		typ, err := t.kind(root.Ref)
		if err != nil {
			return err
		}
		return hold.Set(ctx, t.Source, typ, root, t.mark())
	})
	return mover.PauseSet{}, err
}

// stillHeld makes sure that nobody, a GitOps tool for example, has lifted the pause that scute relies on.
func stillHeld(s *mover.State, members mover.Members) error {
	paused := make(map[object.Ref]bool)
	for _, m := range members.Objects {
		paused[m.Ref] = pause.IsRoot(m.Ref) && pause.RootOf(m.Observed).Found
	}
	for _, root := range s.Roots {
		if !paused[root.Ref] {
			return final("find out what resets it (a GitOps tool?), stop that for the time of the move, then make another Move",
				"%s is not paused any more, or gone, and it was not scute that did it", root.Ref)
		}
	}
	return nil
}

// kind is a kind of the source in the version that the server prefers.
func (t *Transfer) kind(ref object.Ref) (kube.Type, error) {
	typ, ok := t.types[ref.GroupKind()]
	if !ok {
		return typ, final("put the kind's CustomResourceDefinition back", "the source no longer serves %s", ref.GroupKind())
	}
	return typ, nil
}

// awaitAcks takes one look at all objects and judges each that has not acknowledged yet. It looks at the whole graph
// every time: what appears after the pause must acknowledge too.
func (t *Transfer) awaitAcks(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	members, w, err := t.members(ctx, s.Spec, false)
	if err != nil {
		return nil, err
	}
	if err := stillHeld(s, members); err != nil {
		return nil, err
	}
	speaks := t.speaking(s, w)
	out := mover.AcksSeen{New: make(map[object.Ref]pause.Signal)}
	since := time.Since(s.PausedAt)
	var wake []object.Ref
	for _, m := range members.Objects {
		_, acked := s.Acks[m.Ref]
		if was := s.Baseline[m.Ref].UID; was != "" && was != m.UID {
			acked = false // a namesake has its place now
		}
		if m.Keep != "" || acked && !m.BlockMove {
			continue
		}
		v := pause.Judge(s.Baseline[m.Ref], m.Observed, pause.Context{KindSpeaks: speaks[m.Ref.GroupKind()], SincePause: since})
		switch {
		case v.Acknowledged:
			out.New[m.Ref] = v.How
		default:
			out.Pending = append(out.Pending, mover.Wait{Ref: m.Ref, Why: v.Why})
			if v.Touch {
				wake = append(wake, m.Ref)
			}
		}
	}
	graph := fingerprint(members)
	out.Stable = len(out.Pending) == 0 && graph == t.lastGraph
	t.lastGraph = graph
	if since >= touchAfter {
		t.touch(ctx, t.Source, t.types, wake)
	}
	return out, nil
}

// speaking are the kinds of which some object gives the signal, now or at the baseline.
func (t *Transfer) speaking(s *mover.State, w *world) map[string]bool {
	if t.spoke == nil {
		t.spoke = make(map[string]bool)
		for ref, b := range s.Baseline {
			if b.Paused != object.Absent {
				t.spoke[ref.GroupKind()] = true
			}
		}
	}
	for _, o := range w.objects {
		if o.Paused != object.Absent {
			t.spoke[o.Ref.GroupKind()] = true
		}
	}
	return t.spoke
}

// fingerprint identifies which objects there are; not what they say.
func fingerprint(m mover.Members) string {
	h := sha256.New()
	for _, o := range m.Objects {
		h.Write([]byte(o.Ref.String() + "\x00" + string(o.UID) + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// touch wakes the controllers of silent objects with a write that changes nothing: an annotation set and taken off. It
// only hurries: that it failed is no failure.
func (t *Transfer) touch(ctx context.Context, c *kube.Cluster, kinds map[string]kube.Type, refs []object.Ref) {
	if t.touched == nil {
		t.touched = make(map[object.Ref]time.Time)
	}
	now := time.Now()
	var due []object.Ref
	for _, ref := range refs {
		if now.Sub(t.touched[ref]) >= touchEvery {
			t.touched[ref] = now
			due = append(due, ref)
		}
	}
	_ = parallel(ctx, t.workers(), due, func(ctx context.Context, ref object.Ref) error {
		typ := kinds[ref.GroupKind()]
		if err := annotate(ctx, c, typ, ref, "", map[string]any{object.TouchAnnotation: t.ID}); err != nil {
			return err
		}
		return annotate(ctx, c, typ, ref, "", map[string]any{object.TouchAnnotation: nil})
	})
}

// annotate sets annotations, or takes them off where the value is nil. An object that is gone needs none.
func annotate(ctx context.Context, c *kube.Cluster, typ kube.Type, ref object.Ref, uid types.UID, annotations map[string]any) error {
	meta := map[string]any{"annotations": annotations}
	if uid != "" {
		meta["uid"] = uid
	}
	raw, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return err
	}
	err = c.Do(ctx, "annotate "+ref.String(), func(ctx context.Context) error {
		_, err := c.Resource(typ, ref.Namespace).Patch(ctx, ref.Name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: kube.FieldManager})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
