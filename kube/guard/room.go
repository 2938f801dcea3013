package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"scute.dev/internal/fair"
)

// ErrNoRoom is wrapped by the error of a large response that cannot be read now, because other large responses are being read. The request may be
// retried.
var ErrNoRoom = errors.New("no room for a large answer")

const (
	// longestVisit is how long a response keeps its place while other namespaces wait, because a server may send arbitrarily slowly.
	longestVisit = 10 * time.Second
	// decoding is how long a place is kept after reading, per MiB. The client decodes the response in that time, at 50 MiB a second on one core.
	decoding = 20 * time.Millisecond
	// closing is how long a place is kept after the request has ended, so that the client can close the response.
	closing = time.Second
)

// room bounds the number of responses of a size that are read at once, and so their memory. Namespaces take turns. A slow response loses its place if
// another namespace waits.
type room struct {
	places int
	// above is the size, in the bytes and memory that taken returns, above which a response needs a place.
	above int

	mu      sync.Mutex
	waiting *fair.Order[*visit]
	inside  map[*visit]struct{}
}

// newRooms returns the rooms that all API servers share: one for large responses, and one for responses that are larger than a page of a list. The
// latter need a place in both.
func newRooms() []*room {
	return []*room{newRoom(2, 1<<20), newRoom(1, pageLimit+pageMemory)}
}

func newRoom(places, above int) *room {
	return &room{
		places: places, above: above, inside: make(map[*visit]struct{}),
		waiting: fair.NewOrder(func(v *visit) string { return v.namespace }),
	}
}

// visit is the place of one response, or its request for a place.
type visit struct {
	namespace string
	end       context.CancelCauseFunc // ends its reading
	entered   chan struct{}           // closed when it has a place
	keep      func() bool             // keeps the place after the context of its request has ended
	clock     *time.Timer
	until     time.Time // the time limit if another namespace waits; zero while it waits in another room
}

// enter waits for a place until ctx ends. The place is released soon after ctx ends. enter calls end if the reading takes too long while other
// namespaces wait.
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

// leaveAfter releases the place after a delay.
func (r *room) leaveAfter(v *visit, d time.Duration) {
	v.keep()
	r.mu.Lock()
	defer r.mu.Unlock()
	v.clock.Stop()
	time.AfterFunc(d, func() { r.leave(v) })
}

// leave releases the place, if the visit has one.
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

// admit assigns free places to the waiting visits, in turns.
func (r *room) admit() {
	for len(r.inside) < r.places && r.waiting.Len() > 0 {
		v := r.waiting.Pop()
		r.inside[v] = struct{}{}
		r.allow(v)
		close(v.entered)
	}
}

// allow starts the time limit of a visit.
func (r *room) allow(v *visit) {
	v.until = time.Now().Add(longestVisit)
	v.clock = time.AfterFunc(longestVisit, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.hurry()
	})
}

// rest stops the time limit of a visit, because it waits for a place in another room.
func (r *room) rest(v *visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v.clock.Stop()
	v.until = time.Time{}
}

// resume restarts the time limit of a visit.
func (r *room) resume(v *visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, has := r.inside[v]; has {
		r.allow(v)
	}
}

// hurry ends visits that exceed their time limit, if another namespace waits.
func (r *room) hurry() {
	for v := range r.inside {
		if overdue := !v.until.IsZero() && !time.Now().Before(v.until); overdue && r.waiting.Others(v.namespace) {
			v.end(fmt.Errorf("%w: it was not read within %s, and others wait", ErrNoRoom, longestVisit))
		}
	}
}
