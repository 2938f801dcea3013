package supervise

// share counts the places of a limited resource by namespace. A namespace that holds less than an equal share of the limit, or nothing, always gets
// a place while all namespaces together hold less than twice the limit. So a tenant that holds its places forever does not block others.
type share struct {
	limit, total int
	held         map[string]int
}

func newShare(limit int) share { return share{limit: limit, held: make(map[string]int)} }

func (s *share) admits(namespace string) bool {
	if s.total < s.limit {
		return true
	}
	held := s.held[namespace]
	if held == 0 {
		return s.total < 2*s.limit
	}
	return s.total < 2*s.limit && held < s.limit/len(s.held)
}

func (s *share) acquire(namespace string) {
	s.held[namespace]++
	s.total++
}

func (s *share) release(namespace string) {
	s.total--
	if s.held[namespace]--; s.held[namespace] == 0 {
		delete(s.held, namespace)
	}
}
