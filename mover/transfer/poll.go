package transfer

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

type polls struct {
	first time.Time
	pause.Patience
}

// poll reads the copies of items once. For each, it calls lacks, which returns what the target's
// controllers have not written to the copy yet, or "" if it is complete; u is nil if the copy does
// not exist. poll returns the complete copies (done), and the others sorted by reference (pending).
// If no copy has become complete for a while, it triggers the controllers of the pending copies.
func (t *Transfer) poll(
	ctx context.Context, l *polls, items []mover.Item, lacks func(ctx context.Context, w wanted, u *unstructured.Unstructured) (string, error),
) (done []object.Ref, pending []mover.ObjectReason, err error) {
	want, err := t.wantedOf(t.target, items)
	if err != nil {
		return nil, nil, err
	}
	whys := make([]string, len(want))
	err = readEach(ctx, t, t.target, want, func(ctx context.Context, i int, u *unstructured.Unstructured) (none struct{}, err error) {
		whys[i], err = lacks(ctx, want[i], u)
		return none, err
	}, discard)
	if err != nil {
		return nil, nil, err
	}
	for i, w := range want {
		if whys[i] == "" {
			done = append(done, w.ref)
		} else {
			pending = append(pending, mover.ObjectReason{Ref: w.ref, Reason: whys[i]})
		}
	}
	slices.SortFunc(pending, func(a, b mover.ObjectReason) int { return object.Compare(a.Ref, b.Ref) })
	if l.first.IsZero() {
		l.first = time.Now()
	}
	if l.Exceeded(len(done), time.Since(l.first)) {
		wake := make([]object.Ref, len(pending))
		for i, w := range pending {
			wake[i] = w.Ref
		}
		t.touches.Touch(ctx, t.targetWriter(items), wake)
	}
	return done, pending, nil
}

// pollUnacknowledged returns the copies whose condition Paused is not True. The target's
// controllers may not have observed them yet.
func (t *Transfer) pollUnacknowledged(ctx context.Context, s *mover.State) ([]mover.ObjectReason, error) {
	items := slices.DeleteFunc(slices.Clone(s.Plan), func(item mover.Item) bool { return !s.NeedsCopyAck(item) || t.acknowledged[item.Ref] })
	done, pending, err := t.poll(ctx, &t.ackPolls, items, func(_ context.Context, _ wanted, u *unstructured.Unstructured) (string, error) {
		if u == nil || object.Observe(u).Paused == object.True { // the comparison reports a missing copy
			return "", nil
		}
		return "its controller on the target has not acknowledged that it is paused", nil
	})
	if t.acknowledged == nil {
		t.acknowledged = make(map[object.Ref]bool, len(items))
	}
	for _, ref := range done {
		t.acknowledged[ref] = true
	}
	return pending, err
}
