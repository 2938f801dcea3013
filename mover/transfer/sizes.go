package transfer

import (
	"maps"
	"sync"

	"scute.dev/kube"
)

// sizes are how many objects of a kind a side had in a namespace when they were last listed. The zero value is ready for use.
type sizes struct {
	mu     sync.Mutex
	counts map[size]int
}

type size struct {
	side string
	part
}

// counted are the sizes of one look.
type counted map[size]int

// listed notes a kind in a namespace before its objects are counted: it may have none.
func (n counted) listed(c *kube.Cluster, l listing) { n[sizeOf(c, l)] = 0 }

// add counts an object of a listing, and of its namespace where the listing is of all of them.
func (n counted) add(c *kube.Cluster, l listing, namespace string) {
	n[sizeOf(c, l)]++
	if namespace != l.namespace {
		n[sizeOf(c, listing{l.typ, namespace})]++
	}
}

func sizeOf(c *kube.Cluster, l listing) size {
	return size{c.Name, part{l.typ.GroupKind(), l.namespace}}
}

// learn puts the sizes of a look in the place of earlier ones.
func (s *sizes) learn(later counted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = make(map[size]int)
	}
	maps.Copy(s.counts, later)
}

// of is 0 also where nothing was listed.
func (s *sizes) of(c *kube.Cluster, l listing) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[sizeOf(c, l)]
}

// empty says that a listing had nothing when it was last made.
func (s *sizes) empty(c *kube.Cluster, l listing) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known := s.counts[sizeOf(c, l)]
	return known && n == 0
}
