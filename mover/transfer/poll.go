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

// patience is how many polls in a row show nothing new before controllers of the target are triggered by writes.
const patience = 2

// stuck records a poll, and reports whether the controllers have to be triggered. Most act without that.
func (l *polls) stuck(news int) bool {
	if l.first.IsZero() {
		l.first = time.Now()
	}
	if l.quiet++; news > 0 {
		l.quiet = 0
	}
	return l.quiet >= patience && time.Since(l.first) >= hold.TouchAfter
}

// lacking returns what a controller of the target has not yet written to a copy, or "". u is nil if there is no copy.
type lacking func(ctx context.Context, w wanted, u *unstructured.Unstructured) (string, error)

// poll reads copies once. It returns those that lack nothing, and the others in their order. If nothing new was found for a while, it
// triggers the controllers of the others.
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

// unseen polls the copies that controllers of the target must acknowledge, and returns those without condition Paused: their controllers may
// not know them.
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
