package page

import (
	"math"

	"scute.dev/cmd/ui/world"
	"scute.dev/eventlog"
)

// For is the same pages for somebody who may see only what sees selects: everything else is as if it had never been in the log, also
// in lists, counts, searches, in the past, and in what is said of the log itself. Nothing is proven and nothing can be changed there: a
// proof tells the size of the log, and who reads here may not act with the credentials of the program.
func (s *Site) For(sees func(eventlog.Aggregate) bool) *Site {
	limited := *s
	limited.sees, limited.prover, limited.acts = sees, nil, false
	return &limited
}

// As is the same pages for a user by name, with a way to sign out for somebody who has signed in here.
func (s *Site) As(user string, leaves bool) *Site {
	theirs := *s
	theirs.user, theirs.leaves = user, leaves
	return &theirs
}

// near are the last commit up to a sequence that the pages may show, and those beside it.
func (s *Site) near(seq uint64) (last, before, after uint64) {
	return s.feed.Commits.Near(s.sees, min(seq, math.MaxUint64-1))
}

// limit takes out of a moment what the pages may not show.
func (s *Site) limit(w *world.World) *world.World {
	if s.sees == nil {
		return w
	}
	last, _, _ := s.near(w.Seq)
	return w.Only(s.sees, last, s.feed.Commits.Stored(last))
}

// head is the last commit of the log that the pages may show.
func (s *Site) head() uint64 { return s.Last(s.feed.Commits.Head(), 0, 0) }

// Last is the last commit up to one that the pages may show. known is that up to the commit after; 0 and 0 if that is not known.
func (s *Site) Last(seq, after, known uint64) uint64 {
	if s.sees == nil {
		return seq
	}
	if after == 0 {
		last, _, _ := s.near(seq)
		return last
	}
	for ; seq > after; seq-- {
		if s.sees(s.feed.Commits.Aggregate(seq)) {
			return seq
		}
	}
	return known
}
