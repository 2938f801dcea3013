package tasktest

import (
	"context"
	"sync"

	"scute.dev/workflow/task"
)

// Place is the place of a run as one call sees it. It is there whenever the call asks to work again.
type Place struct {
	mu     sync.Mutex
	waits  bool
	waited int
}

// For has a call tell this place what it does, and returns the call.
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

// Waits says that the call only waits.
func (p *Place) Waits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waits
}

// Waited is how many times the call began to only wait.
func (p *Place) Waited() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waited
}
