package tasktest

import (
	"context"
	"sync"

	"scute.dev/workflow/task"
)

// Place is the place of a run for one call. It is granted whenever the call asks to work again.
type Place struct {
	mu     sync.Mutex
	waits  bool
	waited int
}

// For sets the callbacks of the call to this place, and returns the call.
func (p *Place) For(c *task.Call) *task.Call {
	c.Waits = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.waits {
			p.waits = true
			p.waited++
		}
	}
	c.Works = func(context.Context) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waits = false
		return nil
	}
	return c
}

// Waits reports whether the call only waits.
func (p *Place) Waits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waits
}

// Waited returns how many times the call began to only wait.
func (p *Place) Waited() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waited
}
