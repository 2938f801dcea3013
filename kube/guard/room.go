package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"scute.dev/internal/fair"
)

// ErrNoRoom is the cause of the error of a large answer that is not read now: others are. It may be asked for again.
var ErrNoRoom = errors.New("no room for a large answer")

const (
	// places is how many large answers are read and decoded at a time, of all API servers together.
	places = 2
	// smallAnswer takes so little, in bytes as they are read and in memory when it is decoded, that it needs no place.
	smallAnswer = 1 << 20
	// longestVisit is how long a large answer keeps its place while others wait: a server may send as slowly as it likes.
	longestVisit = 10 * time.Second
	// decoding is how long its place is kept after it was read, for each MiB: the client decodes it then.
	decoding = 5 * time.Millisecond
)

// room is where large answers are read: together they take what a few of them may take. Namespaces take turns, and who is slow leaves for who waits.
type room struct {
	mu      sync.Mutex
	free    int
	waiting *fair.Order[*visit]
	wanted  int // how many wait and did not give up
	inside  map[*visit]struct{}
}

func newRoom() *room {
	return &room{
		free: places, inside: make(map[*visit]struct{}),
		waiting: fair.NewOrder(func(v *visit) string { return v.namespace }),
	}
}

// visit is that of one answer.
type visit struct {
	namespace string
	end       context.CancelCauseFunc // ends its reading
	entered   chan struct{}           // closed when it has a place
	gaveUp    bool                    // before it had one
	clock     *time.Timer
	overdue   bool
}

// enter waits for a place, until ctx ends. end is called when others wait and its reading takes too long.
func (r *room) enter(ctx context.Context, namespace string, end context.CancelCauseFunc) (*visit, error) {
	v := &visit{namespace: namespace, end: end, entered: make(chan struct{})}
	r.mu.Lock()
	r.waiting.Push(v)
	r.wanted++
	r.admit()
	r.hurry()
	r.mu.Unlock()
	select {
	case <-v.entered:
		return v, nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, has := r.inside[v]; has {
		return v, nil
	}
	v.gaveUp = true
	r.wanted--
	return nil, fmt.Errorf("%w: %d are read at a time, and other namespaces had their turn: %w", ErrNoRoom, places, context.Cause(ctx))
}

// leave gives the place back, in a while if it is not zero.
func (r *room) leave(v *visit, in time.Duration) {
	r.mu.Lock()
	v.clock.Stop()
	r.mu.Unlock()
	if in > 0 {
		time.AfterFunc(in, func() { r.leave(v, 0) })
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inside, v)
	r.free++
	r.admit()
}

// admit gives free places to who has its turn.
func (r *room) admit() {
	for r.free > 0 && r.waiting.Len() > 0 {
		v := r.waiting.Pop()
		if v.gaveUp {
			continue
		}
		r.free--
		r.wanted--
		r.inside[v] = struct{}{}
		v.clock = time.AfterFunc(longestVisit, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			v.overdue = true
			r.hurry()
		})
		close(v.entered)
	}
}

// hurry ends what takes too long, if somebody waits.
func (r *room) hurry() {
	for v := range r.inside {
		if v.overdue && r.wanted > 0 {
			v.end(fmt.Errorf("%w: it was not read within %s, and others wait", ErrNoRoom, longestVisit))
		}
	}
}
