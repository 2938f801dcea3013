package web

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// lines let each person wait for few pages at once: the others of a person wait for those, and not in front of what others ask for.
type lines struct {
	mu sync.Mutex
	of map[string]*line
}

type line struct {
	in    int
	turns *semaphore.Weighted
}

// enter waits until a person may ask for one more page, and counts it until leave is called. Nobody, "", does not wait.
func (l *lines) enter(ctx context.Context, person string) (leave func(), err error) {
	if person == "" {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, drawTime)
	defer cancel()
	one := l.join(person)
	if one.turns.Acquire(ctx, 1) != nil {
		l.leave(person)
		return nil, errBusy
	}
	return func() {
		one.turns.Release(1)
		l.leave(person)
	}, nil
}

func (l *lines) join(person string) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = make(map[string]*line)
	}
	one := l.of[person]
	if one == nil {
		one = &line{turns: semaphore.NewWeighted(drawings)}
		l.of[person] = one
	}
	one.in++
	return one
}

func (l *lines) leave(person string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[person].in--; l.of[person].in == 0 {
		delete(l.of, person)
	}
}
