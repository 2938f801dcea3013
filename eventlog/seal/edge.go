package seal

import (
	"crypto/sha256"
	"fmt"
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"scute.dev/eventlog"
)

// edge is the right edge of a tree: the roots of the complete subtrees that the tree consists of, the largest first. Their
// number is the number of ones in the tree's size, so it is logarithmic. The zero value is the empty tree.
type edge struct {
	size  uint64
	roots []tlog.Hash
}

// add appends a leaf and returns the hashes that it completes: its own, then those of the subtrees that end with it. They
// follow those of the leaf before in the order of tlog.StoredHashIndex. The result is valid until the next call.
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

// hashes are the roots, for another one to continue with.
func (e *edge) hashes() (out [][]byte) {
	for _, h := range e.roots {
		out = append(out, slices.Clone(h[:]))
	}
	return out
}

// edgeOf is the edge of a tree of some size, whose hashes another one has given.
func edgeOf(size uint64, hashes [][]byte) (e edge, err error) {
	if len(hashes) != bits.OnesCount64(size) {
		return e, fmt.Errorf("the edge of a tree of %d commits has %d hashes, must have %d", size, len(hashes), bits.OnesCount64(size))
	}
	e.size = size
	for _, h := range hashes {
		if len(h) != hashSize {
			return e, fmt.Errorf("a hash of the edge has %d bytes, must have %d", len(h), hashSize)
		}
		e.roots = append(e.roots, tlog.Hash(h))
	}
	return e, nil
}

// floored is the edge at the floor of a log; that of no commits without one.
func floored(f *eventlog.Floor) (edge, error) {
	if f == nil {
		return edge{}, nil
	}
	e, err := edgeOf(f.Seq-1, f.Edge)
	if err != nil {
		return e, fmt.Errorf("reading the floor of the log: %w; restore the log from its archive", err)
	}
	return e, nil
}

// root is the root of the tree.
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
