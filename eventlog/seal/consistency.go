package seal

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Continues says whether a checkpoint continues another one of the same log, by a tree that needs no trust. Its error says that the
// tree is not that of the newer checkpoint, so that nothing can be said.
func Continues(tree *Tree, from, to Checkpoint) (bool, error) {
	if from.LogID != to.LogID {
		return false, nil
	}
	newer, err := tree.Root(to.Size)
	if err != nil {
		return false, err
	}
	if newer != to.Root {
		return false, fmt.Errorf("the hashes are not those of the checkpoint at %d: nothing can be said by them", to.Size)
	}
	proof, older, err := prove(tree, from.Size, to.Size)
	if err != nil {
		return false, err
	}
	if from.Size > 0 && from.Size < to.Size {
		if err := tlog.CheckTree(proof, int64(to.Size), to.Root, int64(from.Size), older); err != nil { //nolint:gosec // far below 2^63
			return false, fmt.Errorf("the hashes of the log contradict each other: %w", err)
		}
	}
	return older == from.Root, nil
}

// prove is the proof that the tree of one size begins with the tree of another, and the root of that.
func prove(tree *Tree, from, to uint64) (tlog.TreeProof, tlog.Hash, error) {
	older, err := tree.Root(from)
	if err != nil || from == 0 || from == to {
		return nil, older, err
	}
	proof, err := tlog.ProveTree(int64(to), int64(from), tree) //nolint:gosec // far below 2^63
	return proof, older, err
}

// Continues says whether the checkpoint continues the earlier ones, by the commits that were added. Its error says that they are
// not those of the checkpoint, so that nothing can be said.
func (v *Verifier) Continues() (bool, error) {
	if !v.whole || v.good != v.want.Size {
		return false, fmt.Errorf("the commits are not those of the checkpoint at %d: nothing can be said by them", v.want.Size)
	}
	return v.bad == 0, nil
}

// ProveConsistency is the proof that the tree of one size begins with the tree of another (RFC 6962, section 2.1.2).
func ProveConsistency(tree *Tree, from, to uint64) (tlog.TreeProof, error) {
	proof, _, err := prove(tree, from, to)
	return proof, err
}
