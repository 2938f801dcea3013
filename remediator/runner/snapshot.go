package runner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"scute.dev/eventlog"
	"scute.dev/internal/fields"
	"scute.dev/remediator"
)

// saved is an owner in a snapshot. A projector saves no view that holds something unreadable.
type saved struct {
	seq     uint64
	state   remediator.State
	reduced bool
}

// boundary is the part that says at which commit the view was told to forget last. No owner is called so.
const boundary = "epoch"

// Snapshot implements projector.Snapshotter.
func (v *Remediations) Snapshot(put func(part string, data []byte) error) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var buffer []byte
	for _, id := range slices.Sorted(maps.Keys(v.owners)) {
		var err error
		e := v.owners[id]
		if buffer, err = fields.Append(buffer[:0], &saved{e.seq, e.state, e.reduced}); err != nil {
			return fmt.Errorf("saving the owner %s: %w", id, err)
		}
		if err := put(partOf(id), buffer); err != nil {
			return err
		}
	}
	if v.opened > 0 {
		var err error
		if buffer, err = fields.Append(buffer[:0], &v.opened); err != nil {
			return fmt.Errorf("saving what was forgotten: %w", err)
		}
		if err := put(partOf(boundary), buffer); err != nil {
			return err
		}
	}
	if v.passed.seq == 0 {
		return nil
	}
	buffer, err := fields.Append(buffer[:0], &v.passed)
	if err != nil {
		return fmt.Errorf("saving the turnstile: %w", err)
	}
	return put(partOf(turnstile), buffer)
}

// Restore implements projector.Snapshotter. Nobody is told of what it restores.
func (v *Remediations) Restore(part string, data []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch part {
	case partOf(turnstile):
		return fields.Read(data, &v.passed)
	case partOf(boundary):
		return fields.Read(data, &v.opened)
	}
	var s saved
	if err := fields.Read(data, &s); err != nil {
		return fmt.Errorf("restoring %s: %w", part, err)
	}
	_, id, _ := strings.Cut(part, "/")
	v.owners[id] = &logged{state: s.state, seq: s.seq, reduced: s.reduced}
	return nil
}

func partOf(id string) string {
	return eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: id}.String()
}
