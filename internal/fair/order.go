package fair

// Order is what waits. The namespaces of which something waits take turns; within one, first in is first out. It locks nothing.
type Order[T any] struct {
	namespace func(T) string
	waiting   map[string][]T
	// turn has the namespaces with something that waits, the one whose turn is next first.
	turn []string
	n    int
}

// NewOrder makes one in which nothing waits.
func NewOrder[T any](namespace func(T) string) *Order[T] {
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
