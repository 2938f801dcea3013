package fair

import "slices"

// Order is what waits. The namespaces of which something waits take turns; within one, first in is first out. It locks nothing.
type Order[T comparable] struct {
	namespace func(T) string
	waiting   map[string][]T
	// turn has the namespaces with something that waits, the one whose turn is next first.
	turn []string
	n    int
}

// NewOrder makes one in which nothing waits.
func NewOrder[T comparable](namespace func(T) string) *Order[T] {
	return &Order[T]{namespace: namespace, waiting: make(map[string][]T)}
}

// Touch is called for what waits already: it keeps its place.
func (o *Order[T]) Touch(T) {}

// Len is how much waits.
func (o *Order[T]) Len() int { return o.n }

// Push adds something that waits.
func (o *Order[T]) Push(item T) {
	ns := o.namespace(item)
	if len(o.waiting[ns]) == 0 {
		o.turn = append(o.turn, ns)
	}
	o.waiting[ns] = append(o.waiting[ns], item)
	o.n++
}

// Pop takes what has its turn. It is called only where something waits.
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

// Remove takes out what does not wait any more.
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

// Others says whether something waits that is not of a namespace.
func (o *Order[T]) Others(namespace string) bool {
	return len(o.waiting) > 1 || len(o.waiting) == 1 && len(o.waiting[namespace]) == 0
}
