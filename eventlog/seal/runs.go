package seal

import (
	"fmt"
	"slices"
)

// Run is the range of sequences from First to Last.
type Run struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// String returns "7" or "7-9".
func (r Run) String() string {
	if r.First == r.Last {
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// runs is a set of sequences as sorted ranges that do not touch.
type runs []Run

// extend adds sequences after all sequences of the set.
func (s *runs) extend(first, last uint64) {
	if first > last {
		return
	}
	if n := len(*s); n > 0 && (*s)[n-1].Last+1 == first {
		(*s)[n-1].Last = last
		return
	}
	*s = append(*s, Run{first, last})
}

func (s runs) has(seq uint64) bool {
	_, found := slices.BinarySearchFunc(s, seq, func(r Run, seq uint64) int {
		switch {
		case r.Last < seq:
			return -1
		case r.First > seq:
			return 1
		default:
			return 0
		}
	})
	return found
}

// count returns the number of sequences.
func (s runs) count() (n uint64) {
	for _, r := range s {
		n += r.Last - r.First + 1
	}
	return n
}

// union returns the sequences that are in a or b.
func union(a, b runs) (out runs) {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y Run) int {
		if x.First < y.First {
			return -1
		}
		return 1
	})
	for _, r := range all {
		if n := len(out); n > 0 && r.First <= out[n-1].Last+1 {
			out[n-1].Last = max(out[n-1].Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return out
}

// split returns the sequences that are in a but not in b, and the sequences that are in both.
func split(a, b runs) (only, both runs) {
	j := 0
	for _, r := range a {
		for at := r.First; at <= r.Last; {
			for j < len(b) && b[j].Last < at {
				j++
			}
			if j == len(b) || b[j].First > r.Last {
				only.extend(at, r.Last)
				break
			}
			if b[j].First > at {
				only.extend(at, b[j].First-1)
				at = b[j].First
			}
			end := min(r.Last, b[j].Last)
			both.extend(at, end)
			at = end + 1
		}
	}
	return only, both
}
