package runner

import (
	"time"

	"scute.dev/internal/redact"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// queuedFor is how long after its last turn an owner keeps its place: longer than a defragmentation may take, after which it has a turn.
const queuedFor = 6 * time.Minute

// care is what the process knows of defragmentations beside the log of an owner. In the whole fleet one member is defragmented at a
// time: it takes a reconciliation as long, and there are only so many at once. Who finds the members of others in the way waits for its
// turn, so that none that fails again and again keeps another one from it.
func (r *Runner) care(self *tracker, f *remediator.Facts) remediator.CareFacts {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	known := remediator.CareFacts{Tried: self.tried, Err: self.triedErr}
	known.Elsewhere, known.Free = r.inFront(self, now)
	f.Care = known
	switch {
	case f.Cluster.Reach == object.Absent && f.Policy.Defragmentation.Wanted && !f.Policy.DryRun: // etcd was not asked
	case !remediator.AwaitsCare(self.agg.State, f, now):
		self.queued = time.Time{}
	case self.queued.IsZero():
		self.queued = now
	}
	known.Queued = self.queued
	return known
}

// inFront is the owner whose etcd is being defragmented, or has waited for that for longer and has had a turn lately, and until when it is
// occupied at the latest. The lock is held.
func (r *Runner) inFront(self *tracker, now time.Time) (owner string, until time.Time) {
	for id, e := range r.owners {
		switch {
		case e == self:
		case now.Before(e.occupied):
			return id, e.occupied
		case !e.queued.IsZero() && now.Sub(e.turnedAt) < queuedFor && (self.queued.IsZero() || e.queued.Before(self.queued)):
			owner = id
		}
	}
	return owner, time.Time{}
}

// defragmented remembers that a defragmentation was carried out, well or not. Another process carries it out again, if there is time.
func (e *tracker) defragmented(until time.Time, err error) {
	e.tried, e.triedErr = until, ""
	if err != nil {
		e.triedErr = redact.Message(err.Error())
	}
}
