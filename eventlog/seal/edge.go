package seal

import (
	"crypto/sha256"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"

	"scute.dev/eventlog"
)

// edge is the right edge of a tree: the roots of its complete subtrees, the largest first. There is
// one root for each one-bit of size. The zero value is the empty tree.
type edge struct {
	size  uint64
	roots []tlog.Hash
}

// add appends a leaf and returns the hashes that it completes: the leaf, then the subtrees that end
// with it. They follow the hashes of the previous leaf in the order of tlog.StoredHashIndex. The
// result is valid until the next call.
func (e *edge) add(leaf tlog.Hash, completed []tlog.Hash) []tlog.Hash {
	completed = append(completed[:0], leaf)
	for range bits.TrailingZeros64(e.size + 1) {
		last := len(e.roots) - 1
		leaf = tlog.NodeHash(e.roots[last], leaf)
		e.roots = e.roots[:last]
		completed = append(completed, leaf)
	}
	e.roots = append(e.roots, leaf)
	e.size++
	return completed
}

func (e *edge) root() tlog.Hash {
	if len(e.roots) == 0 {
		return sha256.Sum256(nil)
	}
	h := e.roots[len(e.roots)-1]
	for i := len(e.roots) - 2; i >= 0; i-- {
		h = tlog.NodeHash(e.roots[i], h)
	}
	return h
}

// Sum computes the checkpoint of the commits of a log. It keeps only the right edge of the tree of
// these commits. The zero value has no commits.
type Sum struct {
	hasher Hasher
	edge   edge
	spare  []tlog.Hash
}

// Add adds the next commit.
func (s *Sum) Add(r eventlog.Record) { s.spare = s.edge.add(s.hasher.Hash(r), s.spare) }

// Checkpoint returns the checkpoint of the added commits, for the log with this ID.
func (s *Sum) Checkpoint(logID string) Checkpoint {
	return Checkpoint{LogID: logID, Size: s.edge.size, Root: s.edge.root()}
}
