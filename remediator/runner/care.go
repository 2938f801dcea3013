package runner

import (
	"time"

	"scute.dev/internal/redact"
	"scute.dev/remediator"
)

// care is what the process knows of defragmentations beside the log of an owner. In the whole fleet one member is defragmented at a
// time: it takes a reconciliation as long, and there are only so many at once.
func (r *Runner) care(self *tracker) remediator.CareFacts {
	known := remediator.CareFacts{Tried: self.tried, Err: self.triedErr}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, e := range r.owners {
		if e != self && now.Before(e.occupied) {
			known.Elsewhere = id
		}
	}
	return known
}

// defragmented remembers that a defragmentation was carried out, well or not. Another process carries it out again, if there is time.
func (e *tracker) defragmented(until time.Time, err error) {
	e.tried, e.triedErr = until, ""
	if err != nil {
		e.triedErr = redact.Message(err.Error())
	}
}
