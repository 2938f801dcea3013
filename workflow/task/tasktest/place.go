package tasktest

import (
	"context"
	"sync"

	"scute.dev/workflow/task"
)

// Slot is the place of a run for one call. It is granted whenever the call asks to work again.
type Slot struct {
	mu      sync.Mutex
	yielded bool
	yields  int
}

// Attach sets the callbacks of the call to this place, and returns the call.
func (p *Slot) Attach(c *task.Call) *task.Call {
	c.Yield = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.yielded {
			p.yielded = true
			p.yields++
		}
	}
	c.Reacquire = func(context.Context) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.yielded = false
		return nil
	}
	return c
}

// Yielded reports whether the call only waits.
func (p *Slot) Yielded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.yielded
}

// YieldCount returns how many times the call began to only wait.
func (p *Slot) YieldCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.yields
}
