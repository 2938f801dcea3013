package runner

import (
	"time"

	"scute.dev/internal/redact"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// queueTTL is how long after its last turn an owner keeps its place in the queue. It is longer than a defragmentation, which a turn follows.
const queueTTL = 6 * time.Minute

// maintenance returns what the process knows about defragmentations that is not in the owner's log. In the whole fleet one member is defragmented at a time,
// because that occupies one of the few concurrent reconciliations. Owners wait in a queue, so that an owner whose defragmentations fail again and
// again does not keep others waiting.
func (r *Runner) maintenance(self *tracker, f *remediator.Facts) remediator.MaintenanceFacts {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	known := remediator.MaintenanceFacts{Attempted: self.attempted, Err: self.attemptErr}
	known.OtherOwner, known.FreeAt = r.queuedBefore(self, now)
	f.Maintenance = known
	switch {
	case f.Cluster.Reachable == object.Absent && f.Policy.Defragmentation.Enabled && !f.Policy.DryRun: // etcd was not asked
	case !remediator.AwaitsDefragmentation(self.agg.State, f, now):
		self.queued = time.Time{}
	case self.queued.IsZero():
		self.queued = now
	}
	known.QueuedSince = self.queued
	return known
}

// queuedBefore returns the owner whose etcd is being defragmented, or has waited longer and had a turn recently. It also returns the deadline of the
// defragmentation. The caller holds the lock.
func (r *Runner) queuedBefore(self *tracker, now time.Time) (owner string, until time.Time) {
	for id, e := range r.owners {
		switch {
		case e == self:
		case now.Before(e.defragmentingUntil):
			return id, e.defragmentingUntil
		case !e.queued.IsZero() && now.Sub(e.turnedAt) < queueTTL && (self.queued.IsZero() || e.queued.Before(self.queued)):
			owner = id
		}
	}
	return owner, time.Time{}
}

// recordDefragmentation records that a defragmentation was carried out, and its error. Another process would carry it out again, if there is time.
func (e *tracker) recordDefragmentation(until time.Time, err error) {
	e.attempted, e.attemptErr = until, ""
	if err != nil {
		e.attemptErr = redact.Message(err.Error())
	}
}
