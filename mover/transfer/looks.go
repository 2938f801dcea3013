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

// looks counts those of this process at what controllers of the target say.
type looks struct {
	first time.Time
	pause.Patience
}

// stuck reports after one more look whether controllers have to be woken.
func (l *looks) stuck(news int) bool {
	if l.first.IsZero() {
		l.first = time.Now()
	}
	return l.Over(news, time.Since(l.first))
}

// lacking says what a controller of the target has still to say of a copy, nil where there is none; "" when it has said it.
type lacking func(ctx context.Context, w wanted, u *unstructured.Unstructured) (string, error)

// lookAt takes one look at some copies. It returns those of which all is said, and the others in their order; when nothing new is said for
// a while, the controllers of the others are woken.
func (t *Transfer) lookAt(ctx context.Context, l *looks, items []mover.Item, lacks lacking) (done []object.Ref, pending []mover.Wait, err error) {
	want, err := itemsOf(t.onto, t.target, items)
	if err != nil {
		return nil, nil, err
	}
	err = whole(ctx, t, t.target, want, func(ctx context.Context, i int, u *unstructured.Unstructured) (mover.Wait, error) {
		why, err := lacks(ctx, want[i], u)
		return mover.Wait{Ref: want[i].ref, Why: why}, err
	}, func(batch []mover.Wait) error {
		for _, w := range batch {
			if w.Why == "" {
				done = append(done, w.Ref)
			} else {
				pending = append(pending, w)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(pending, func(a, b mover.Wait) int { return object.Compare(a.Ref, b.Ref) })
	if l.stuck(len(done)) {
		wake := make([]object.Ref, len(pending))
		for i, w := range pending {
			wake[i] = w.Ref
		}
		t.watch.Touch(ctx, t.targetWriter(items), wake)
	}
	return done, pending, nil
}

// unseen takes one look at the copies that controllers of the target are to acknowledge: what they have not said is that they know of a
// copy, and that it is paused.
func (t *Transfer) unseen(ctx context.Context, s *mover.State) ([]mover.Wait, error) {
	var items []mover.Item
	for _, item := range s.Plan {
		if s.MustBeSeen(item) && !t.acknowledged[item.Ref] {
			items = append(items, item)
		}
	}
	done, pending, err := t.lookAt(ctx, &t.seen, items, func(_ context.Context, _ wanted, u *unstructured.Unstructured) (string, error) {
		if u == nil || object.Observe(u).Paused == object.True { // what is missing is named by the comparison
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
