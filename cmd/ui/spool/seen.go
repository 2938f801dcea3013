package spool

import (
	"slices"

	"scute.dev/eventlog"
)

// Near are, of the commits on the aggregates that sees selects, the last one up to a sequence, the one before it, and the first one
// after the sequence; 0 for one that is not there.
func (s *Spool) Near(sees func(eventlog.Aggregate) bool, seq uint64) (last, before, after uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for n, all := range s.commits {
		if !sees(s.all[n]) {
			continue
		}
		i, _ := slices.BinarySearch(all, seq+1)
		if i < len(all) && (after == 0 || all[i] < after) {
			after = all[i]
		}
		for _, one := range all[max(0, i-2):i] {
			switch {
			case one > last:
				last, before = one, last
			case one > before:
				before = one
			}
		}
	}
	return last, before, after
}
