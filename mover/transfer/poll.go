package transfer

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause/hold"
)

// polls counts how often this process asked what controllers of the target have written.
type polls struct {
	first time.Time
	quiet int // in a row, that have shown nothing new
}

// patience is how many looks in a row show nothing new before controllers of the target are woken by writes.
const patience = 2

// stuck says after one more look that controllers have to be woken: most act by themselves.
func (l *polls) stuck(news int) bool {
	if l.first.IsZero() {
		l.first = time.Now()
	}
	if l.quiet++; news > 0 {
		l.quiet = 0
	}
	return l.quiet >= patience && time.Since(l.first) >= hold.TouchAfter
}

// lacking says what a controller of the target has still to say of a copy, nil where there is none; "" when it has said it.
type lacking func(ctx context.Context, w wanted, u *unstructured.Unstructured) (string, error)

// poll takes one look at some copies. It returns those of which all is said, and the others in their order; when nothing new is said for
// a while, the controllers of the others are woken.
func (t *Transfer) poll(ctx context.Context, l *polls, items []mover.Item, lacks lacking) (done []object.Ref, pending []mover.Wait, err error) {
	want, err := itemsOf(t.onto, t.target, items)
	if err != nil {
		return nil, nil, err
	}
	whys := make([]string, len(want))
	err = readEach(ctx, t, t.target, want, func(ctx context.Context, i int, u *unstructured.Unstructured) (none struct{}, err error) {
		whys[i], err = lacks(ctx, want[i], u)
		return none, err
	}, nothing)
	if err != nil {
		return nil, nil, err
	}
	for i, w := range want {
		if whys[i] == "" {
			done = append(done, w.ref)
		} else {
			pending = append(pending, mover.Wait{Ref: w.ref, Why: whys[i]})
		}
	}
	slices.SortFunc(pending, func(a, b mover.Wait) int { return object.Compare(a.Ref, b.Ref) })
	if l.stuck(len(done)) {
		wake := make([]object.Ref, len(pending))
		for i, w := range pending {
			wake[i] = w.Ref
		}
		t.touch(ctx, t.targetWriter(items), wake)
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
	done, pending, err := t.poll(ctx, &t.seen, items, func(_ context.Context, _ wanted, u *unstructured.Unstructured) (string, error) {
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
