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
	// longestVisit is how long an answer keeps its place while other namespaces wait: a server may send as slowly as it likes.
	longestVisit = 10 * time.Second
	// decoding is how long its place is kept after it was read, for each MiB: the client decodes it then, 50 MiB a second on one core.
	decoding = 20 * time.Millisecond
	// closing is how long it is kept when the request has ended, for the client to close the answer.
	closing = time.Second
)

// room is where answers of a size are read: together they take what a few of them may take. Namespaces take turns, and who is slow leaves for who waits.
type room struct {
	places int
	// above is what an answer takes, in bytes as they are read and in memory when it is decoded, before it needs a place.
	above int

	mu      sync.Mutex
	waiting *fair.Order[*visit]
	inside  map[*visit]struct{}
}

// newRooms makes the rooms of all API servers together: one for large answers, and one for those of them that are larger than a page of a list, which
// have a place in both.
func newRooms() []*room {
	return []*room{newRoom(2, 1<<20), newRoom(1, pageLimit+pageMemory)}
}

func newRoom(places, above int) *room {
	return &room{
		places: places, above: above, inside: make(map[*visit]struct{}),
		waiting: fair.NewOrder(func(v *visit) string { return v.namespace }),
	}
}

// visit is that of one answer.
type visit struct {
	namespace string
	end       context.CancelCauseFunc // ends its reading
	entered   chan struct{}           // closed when it has a place
	keep      func() bool             // keeps the place although the context of its request ends
	clock     *time.Timer
	until     time.Time // when it is to have left if another namespace waits; zero while it waits in another room
}

// enter waits for a place, until ctx ends; soon after that the place is given back, too. end is called when other namespaces wait and the reading takes too long.
func (r *room) enter(ctx context.Context, namespace string, end context.CancelCauseFunc) (*visit, error) {
	v := &visit{namespace: namespace, end: end, entered: make(chan struct{})}
	r.mu.Lock()
	r.waiting.Push(v)
	r.admit()
	r.hurry()
	r.mu.Unlock()
	select {
	case <-v.entered:
	case <-ctx.Done():
		r.mu.Lock()
		r.waiting.Remove(v)
		r.mu.Unlock()
	}
	if ctx.Err() != nil {
		r.leave(v)
		return nil, fmt.Errorf("%w: %d of its size are read at a time, and others were before it: %w", ErrNoRoom, r.places, context.Cause(ctx))
	}
	v.keep = context.AfterFunc(ctx, func() { time.AfterFunc(closing, func() { r.leave(v) }) })
	return v, nil
}

// leaveAfter gives the place back in a while.
func (r *room) leaveAfter(v *visit, d time.Duration) {
	v.keep()
	r.mu.Lock()
	defer r.mu.Unlock()
	v.clock.Stop()
	time.AfterFunc(d, func() { r.leave(v) })
}

// leave gives the place back, if it has one.
func (r *room) leave(v *visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, has := r.inside[v]; !has {
		return
	}
	v.clock.Stop()
	delete(r.inside, v)
	r.admit()
}

// admit gives free places to who has its turn.
func (r *room) admit() {
	for len(r.inside) < r.places && r.waiting.Len() > 0 {
		v := r.waiting.Pop()
		r.inside[v] = struct{}{}
		r.allow(v)
		close(v.entered)
	}
}

// allow gives a visit its time.
func (r *room) allow(v *visit) {
	v.until = time.Now().Add(longestVisit)
	v.clock = time.AfterFunc(longestVisit, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.hurry()
	})
}

// rest lets a visit take as long as it likes, because it waits in another room for somebody else.
func (r *room) rest(v *visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v.clock.Stop()
	v.until = time.Time{}
}

// resume gives it its time again.
func (r *room) resume(v *visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, has := r.inside[v]; has {
		r.allow(v)
	}
}

// hurry ends what takes too long, if another namespace waits.
func (r *room) hurry() {
	for v := range r.inside {
		if overdue := !v.until.IsZero() && !time.Now().Before(v.until); overdue && r.waiting.Others(v.namespace) {
			v.end(fmt.Errorf("%w: it was not read within %s, and others wait", ErrNoRoom, longestVisit))
		}
	}
}
