package web

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"

	"scute.dev/cmd/ui/feed"
)

// What a person may have at once, so that one alone leaves room for the others: open pages, and pages that are waited for.
const (
	mostOpen    = feed.Readers / 8
	mostWaiting = drawings
)

// lines bound what each person has of something at once.
type lines struct {
	mu sync.Mutex
	of map[string]*line
}

// line is that of one person, of whom in are in it or wait for a turn.
type line struct {
	in    int
	turns *semaphore.Weighted
}

// wait waits until a person may have one more, of most at once, and counts it until leave is called. Nobody, "", does not wait.
func (l *lines) wait(ctx context.Context, person string, most int64) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, drawTime)
	defer cancel()
	return l.enter(person, most, func(turns *semaphore.Weighted) error {
		if turns.Acquire(ctx, 1) != nil {
			return errBusy
		}
		return nil
	})
}

// try is wait that does not wait.
func (l *lines) try(person string, most int64) (leave func(), err error) {
	return l.enter(person, most, func(turns *semaphore.Weighted) error {
		if !turns.TryAcquire(1) {
			return fmt.Errorf("%w of yours", feed.ErrBusy)
		}
		return nil
	})
}

func (l *lines) enter(person string, most int64, take func(*semaphore.Weighted) error) (leave func(), err error) {
	if person == "" {
		return func() {}, nil
	}
	one := l.join(person, most)
	if err := take(one.turns); err != nil {
		l.leave(person)
		return nil, err
	}
	return func() {
		one.turns.Release(1)
		l.leave(person)
	}, nil
}

func (l *lines) join(person string, most int64) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = make(map[string]*line)
	}
	one := l.of[person]
	if one == nil {
		one = &line{turns: semaphore.NewWeighted(most)}
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
