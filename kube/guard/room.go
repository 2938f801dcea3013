package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"scute.dev/internal/fair"
)

// ErrBusy is wrapped by the error of a large response that cannot be read now, because other large responses are being read. The request may be
// retried.
var ErrBusy = errors.New("too many large responses")

const (
	// maxReadTime is how long a response keeps its slot while other namespaces wait, because a
	// server may send arbitrarily slowly.
	maxReadTime = 10 * time.Second
	// decodeGrace is how long a slot is kept after reading, per MiB. The client decodes the
	// response in that time, at 50 MiB a second on one core.
	decodeGrace = 20 * time.Millisecond
	// closeGrace is how long a slot is kept after the request has ended, so that the client can
	// close the response.
	closeGrace = time.Second
)

// pool bounds the number of responses of a size that are read at once, and so their memory.
// Namespaces take turns. A slow response loses its slot if another namespace waits.
type pool struct {
	limit int
	// threshold is the size, in the bytes and memory that taken returns, above which a response
	// needs a slot.
	threshold int

	mu      sync.Mutex
	waiting *fair.Order[*slot]
	active  map[*slot]struct{}
}

// newPools returns the pools that all API servers share: one for large responses, and one for
// responses that are larger than a page of a list. The larger responses need a slot in both pools.
func newPools() []*pool {
	return []*pool{newPool(2, 1<<20), newPool(1, pageLimit+pageMemory)}
}

func newPool(places, above int) *pool {
	return &pool{
		limit: places, threshold: above, active: make(map[*slot]struct{}),
		waiting: fair.NewOrder(func(v *slot) string { return v.namespace }),
	}
}

// slot is the right of one response to be read, or the request for that right.
type slot struct {
	namespace   string
	cancel      context.CancelCauseFunc // ends its reading
	acquired    chan struct{}           // closed when it has a slot
	stopRelease func() bool             // keeps the slot after the context of its request has ended
	timer       *time.Timer
	deadline    time.Time // the time limit if another namespace waits; zero while it waits in another pool
}

// acquire waits for a slot until ctx ends. The slot is released soon after ctx ends. acquire calls
// end if the reading takes too long while other namespaces wait.
func (r *pool) acquire(ctx context.Context, namespace string, end context.CancelCauseFunc) (*slot, error) {
	v := &slot{namespace: namespace, cancel: end, acquired: make(chan struct{})}
	r.mu.Lock()
	r.waiting.Push(v)
	r.admit()
	r.cancelOverdue()
	r.mu.Unlock()
	select {
	case <-v.acquired:
	case <-ctx.Done():
		r.mu.Lock()
		r.waiting.Remove(v)
		r.mu.Unlock()
	}
	if ctx.Err() != nil {
		r.release(v)
		return nil, fmt.Errorf("%w: the limit of %d large responses at a time is reached, and others were first: %w", ErrBusy, r.limit, context.Cause(ctx))
	}
	v.stopRelease = context.AfterFunc(ctx, func() { time.AfterFunc(closeGrace, func() { r.release(v) }) })
	return v, nil
}

// releaseAfter releases the slot after a delay.
func (r *pool) releaseAfter(v *slot, d time.Duration) {
	v.stopRelease()
	r.mu.Lock()
	defer r.mu.Unlock()
	v.timer.Stop()
	time.AfterFunc(d, func() { r.release(v) })
}

// release releases the slot if it is held.
func (r *pool) release(v *slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, has := r.active[v]; !has {
		return
	}
	v.timer.Stop()
	delete(r.active, v)
	r.admit()
}

// admit grants free slots to the waiting responses, in turns by namespace.
func (r *pool) admit() {
	for len(r.active) < r.limit && r.waiting.Len() > 0 {
		v := r.waiting.Pop()
		r.active[v] = struct{}{}
		r.startTimer(v)
		close(v.acquired)
	}
}

// startTimer starts the time limit of a slot.
func (r *pool) startTimer(v *slot) {
	v.deadline = time.Now().Add(maxReadTime)
	v.timer = time.AfterFunc(maxReadTime, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.cancelOverdue()
	})
}

// suspendTimer stops the time limit of a slot, because its response waits for a slot in another
// pool.
func (r *pool) suspendTimer(v *slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v.timer.Stop()
	v.deadline = time.Time{}
}

// resumeTimer restarts the time limit of a slot.
func (r *pool) resumeTimer(v *slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, has := r.active[v]; has {
		r.startTimer(v)
	}
}

// cancelOverdue cancels the reading of responses that exceed their time limit, if another namespace
// waits.
func (r *pool) cancelOverdue() {
	for v := range r.active {
		if overdue := !v.deadline.IsZero() && !time.Now().Before(v.deadline); overdue && r.waiting.HasOthers(v.namespace) {
			v.cancel(fmt.Errorf("%w: it was not read within %s, and others are waiting", ErrBusy, maxReadTime))
		}
	}
}
