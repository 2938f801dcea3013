package web

import (
	"fmt"
	"sync"

	"scute.dev/cmd/ui/feed"
)

// mostOpen bounds the open pages of a person, so that one alone leaves room for the others.
const mostOpen = feed.Readers / 8

// open counts the open pages of each person.
type open struct {
	mu sync.Mutex
	of map[string]int
}

// enter counts one more until leave is called.
func (o *open) enter(person string) (leave func(), err error) {
	if person == "" {
		return func() {}, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[person] >= mostOpen {
		return nil, fmt.Errorf("%w of yours", feed.ErrBusy)
	}
	if o.of == nil {
		o.of = make(map[string]int)
	}
	o.of[person]++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.of[person]--; o.of[person] == 0 {
			delete(o.of, person)
		}
	}, nil
}
