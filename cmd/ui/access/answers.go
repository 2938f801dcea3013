package access

import (
	"context"
	"maps"
	"sync"
	"time"
)

// answers are kept until they are too old, or too many. No error is kept. Those who ask the same at once wait for one answer.
type answers[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]answer[V]
	asked map[K]*question[V]
}

type answer[V any] struct {
	value V
	until time.Time
}

// question is one that is being asked.
type question[V any] struct {
	done  chan struct{}
	value V
	err   error
}

func (a *answers[K, V]) has(key K, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.known[key]
	return ok && now.Before(known.until)
}

// get is the answer to a question, which is asked if no answer is known. An answer holds from when it was asked for: it says how things were
// then. Who goes away does not end a question that others wait for.
func (a *answers[K, V]) get(ctx context.Context, key K, now func() time.Time, keep time.Duration, most int, ask func(context.Context) (V, error)) (V, error) {
	a.mu.Lock()
	if known, ok := a.known[key]; ok && now().Before(known.until) {
		a.mu.Unlock()
		return known.value, nil
	}
	q, ok := a.asked[key]
	if !ok {
		q = &question[V]{done: make(chan struct{})}
		if a.asked == nil {
			a.asked = make(map[K]*question[V])
		}
		a.asked[key] = q
		go a.ask(context.WithoutCancel(ctx), q, key, now, keep, most, ask)
	}
	a.mu.Unlock()
	select {
	case <-q.done:
		return q.value, q.err
	case <-ctx.Done():
		return *new(V), ctx.Err()
	}
}

func (a *answers[K, V]) ask(ctx context.Context, q *question[V], key K, now func() time.Time, keep time.Duration, most int, ask func(context.Context) (V, error)) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	begun := now()
	q.value, q.err = ask(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if q.err == nil {
		a.keep(key, answer[V]{q.value, begun.Add(keep)}, begun, most)
	} else {
		delete(a.known, key)
	}
	delete(a.asked, key)
	close(q.done)
}

// keep makes room first where there is none: what is too old goes, and all of it if that is not enough.
func (a *answers[K, V]) keep(key K, value answer[V], now time.Time, most int) {
	if a.known == nil {
		a.known = make(map[K]answer[V])
	}
	if len(a.known) >= most {
		maps.DeleteFunc(a.known, func(_ K, old answer[V]) bool { return !now.Before(old.until) })
	}
	if len(a.known) >= most {
		clear(a.known)
	}
	a.known[key] = value
}
