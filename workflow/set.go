package workflow

import (
	"iter"
	"math/bits"
)

// set is a set of task numbers. Its summary bits make it cheap to find a few members among a
// hundred thousand tasks.
type set struct {
	words, summary []uint64
	n              int
}

func (s *set) has(i int) bool {
	return i>>6 < len(s.words) && s.words[i>>6]&(1<<(i&63)) != 0
}

func (s *set) put(i int, in bool) {
	if s.has(i) == in {
		return
	}
	if !in {
		s.n--
		if s.words[i>>6] &^= 1 << (i & 63); s.words[i>>6] == 0 {
			s.summary[i>>12] &^= 1 << (i >> 6 & 63)
		}
		return
	}
	for len(s.words) <= i>>6 {
		s.words = append(s.words, 0)
	}
	for len(s.summary) <= i>>12 {
		s.summary = append(s.summary, 0)
	}
	s.n++
	s.words[i>>6] |= 1 << (i & 63)
	s.summary[i>>12] |= 1 << (i >> 6 & 63)
}

func (s *set) clear() { *s = set{} }

// all iterates over the members in ascending order.
func (s *set) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for top, some := range s.summary {
			for ; some != 0; some &= some - 1 {
				w := top<<6 | bits.TrailingZeros64(some)
				for word := s.words[w]; word != 0; word &= word - 1 {
					if !yield(w<<6 | bits.TrailingZeros64(word)) {
						return
					}
				}
			}
		}
	}
}

// backward iterates over the members in descending order.
func (s *set) backward() iter.Seq[int] {
	return func(yield func(int) bool) {
		for w := len(s.words) - 1; w >= 0; w-- {
			for word := s.words[w]; word != 0; {
				high := 63 - bits.LeadingZeros64(word)
				word &^= 1 << high
				if !yield(w<<6 | high) {
					return
				}
			}
		}
	}
}
