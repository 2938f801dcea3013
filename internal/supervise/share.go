package supervise

// share counts what the namespaces hold of something that is limited. A namespace that holds nothing always gets its
// first one while the others together hold less than twice the limit: what one tenant holds for a long time cannot keep
// another from beginning.
type share struct {
	limit, total int
	held         map[string]int
}

func newShare(limit int) share { return share{limit: limit, held: make(map[string]int)} }

func (s *share) admits(namespace string) bool {
	if s.held[namespace] == 0 {
		return s.total < 2*s.limit
	}
	return s.total < s.limit
}

func (s *share) take(namespace string) {
	s.held[namespace]++
	s.total++
}

func (s *share) give(namespace string) {
	s.total--
	if s.held[namespace]--; s.held[namespace] == 0 {
		delete(s.held, namespace)
	}
}
