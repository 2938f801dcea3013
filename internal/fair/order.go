package fair

import "slices"

// Order is a queue in which the namespaces take turns. Within a namespace it is first in, first out. It is not safe for concurrent use.
type Order[T comparable] struct {
	namespace func(T) string
	waiting   map[string][]T
	// turn contains the namespaces with waiting items; the first one is next.
	turn []string
	n    int
}

// NewOrder returns an empty Order.
func NewOrder[T comparable](namespace func(T) string) *Order[T] {
	return &Order[T]{namespace: namespace, waiting: make(map[string][]T)}
}

// Touch does nothing: an item that waits keeps its position.
func (o *Order[T]) Touch(T) {}

// Len returns the number of waiting items.
func (o *Order[T]) Len() int { return o.n }

// Push adds an item.
func (o *Order[T]) Push(item T) {
	ns := o.namespace(item)
	if len(o.waiting[ns]) == 0 {
		o.turn = append(o.turn, ns)
	}
	o.waiting[ns] = append(o.waiting[ns], item)
	o.n++
}

// Pop removes and returns the next item. It must not be called on an empty Order.
func (o *Order[T]) Pop() T {
	ns := o.turn[0]
	item := o.waiting[ns][0]
	o.turn, o.waiting[ns] = o.turn[1:], o.waiting[ns][1:]
	if o.n--; len(o.waiting[ns]) > 0 {
		o.turn = append(o.turn, ns)
	} else {
		delete(o.waiting, ns)
	}
	return item
}

// Remove removes an item, if it waits.
func (o *Order[T]) Remove(item T) {
	ns := o.namespace(item)
	i := slices.Index(o.waiting[ns], item)
	if i < 0 {
		return
	}
	o.waiting[ns] = slices.Delete(o.waiting[ns], i, i+1)
	if o.n--; len(o.waiting[ns]) == 0 {
		delete(o.waiting, ns)
		o.turn = slices.DeleteFunc(o.turn, func(other string) bool { return other == ns })
	}
}

// HasOthers reports whether an item of another namespace waits.
func (o *Order[T]) HasOthers(namespace string) bool {
	return len(o.waiting) > 1 || len(o.waiting) == 1 && len(o.waiting[namespace]) == 0
}
