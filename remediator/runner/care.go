package runner

import (
	"time"

	"scute.dev/internal/redact"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// queuedFor is how long after its last turn an owner keeps its place in the queue. It is longer than a defragmentation, which a turn follows.
const queuedFor = 6 * time.Minute

// care returns what the process knows about defragmentations that is not in the owner's log. In the whole fleet one member is defragmented at a time,
// because that occupies one of the few concurrent reconciliations. Owners wait in a queue, so that an owner whose defragmentations fail again and
// again does not keep others waiting.
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

// inFront returns the owner whose etcd is being defragmented, or has waited longer and had a turn recently. It also returns the deadline of the
// defragmentation. The caller holds the lock.
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

// defragmented records that a defragmentation was carried out, and its error. Another process would carry it out again, if there is time.
func (e *tracker) defragmented(until time.Time, err error) {
	e.tried, e.triedErr = until, ""
	if err != nil {
		e.triedErr = redact.Message(err.Error())
	}
}
