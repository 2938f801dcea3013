package fair

import "slices"

// order is a queue in which namespaces take turns. Within a namespace it is first in, first out. It
// is not safe for concurrent use.
type order[T comparable] struct {
	namespace func(T) string
	waiting   map[string][]T
	// turn contains the namespaces with waiting items; the first namespace is next.
	turn []string
	n    int
}

func newOrder[T comparable](namespace func(T) string) *order[T] {
	return &order[T]{namespace: namespace, waiting: make(map[string][]T)}
}

// Touch does nothing, because a waiting item keeps its position when it is added again.
func (o *order[T]) Touch(T) {}

// Len returns the number of waiting items.
func (o *order[T]) Len() int { return o.n }

// Push adds an item.
func (o *order[T]) Push(item T) {
	ns := o.namespace(item)
	if len(o.waiting[ns]) == 0 {
		o.turn = append(o.turn, ns)
	}
	o.waiting[ns] = append(o.waiting[ns], item)
	o.n++
}

// Pop removes and returns the next item of an order that is not empty.
func (o *order[T]) Pop() T { return o.pop(o.turn[0]) }

// PopLowest removes and returns the next item of the namespace with the lowest rank. Among
// namespaces with the same rank, it chooses the one whose turn is first. rank returns false for a
// namespace that must wait. ok is false if all namespaces must wait.
func (o *order[T]) PopLowest(rank func(namespace string) (int, bool)) (item T, ok bool) {
	var next string
	var lowest int
	for _, ns := range o.turn {
		if n, may := rank(ns); may && (!ok || n < lowest) {
			next, lowest, ok = ns, n, true
		}
	}
	if ok {
		item = o.pop(next)
	}
	return item, ok
}

// pop returns the first item of a namespace, which then has the last turn.
func (o *order[T]) pop(ns string) (item T) {
	queue := o.waiting[ns]
	item, queue[0] = queue[0], item // the zero value: do not retain the item
	o.endTurn(ns)
	if o.n--; len(queue) > 1 {
		o.waiting[ns], o.turn = queue[1:], append(o.turn, ns)
	} else {
		delete(o.waiting, ns)
	}
	return item
}

func (o *order[T]) endTurn(ns string) {
	o.turn = slices.DeleteFunc(o.turn, func(other string) bool { return other == ns })
}

// Remove removes an item if it is waiting.
func (o *order[T]) Remove(item T) {
	ns := o.namespace(item)
	i := slices.Index(o.waiting[ns], item)
	if i < 0 {
		return
	}
	o.waiting[ns] = slices.Delete(o.waiting[ns], i, i+1)
	if o.n--; len(o.waiting[ns]) == 0 {
		delete(o.waiting, ns)
		o.endTurn(ns)
	}
}
