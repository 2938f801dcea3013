package seal

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Continues reports whether a checkpoint continues another one of the same log, according to a tree that need not be trusted. It returns an error
// if the tree does not match the newer checkpoint, because then it proves nothing.
func Continues(tree *Tree, from, to Checkpoint) (bool, error) {
	if from.LogID != to.LogID {
		return false, nil
	}
	newer, err := tree.Root(to.Size)
	if err != nil {
		return false, err
	}
	if newer != to.Root {
		return false, fmt.Errorf("the hashes do not match the checkpoint at %d, so they cannot be used for this check", to.Size)
	}
	older, err := tree.Root(from.Size)
	if err != nil {
		return false, err
	}
	if from.Size > 0 && from.Size < to.Size {
		proof, err := ProveConsistency(tree, from.Size, to.Size)
		if err != nil {
			return false, err
		}
		if err := tlog.CheckTree(proof, int64(to.Size), to.Root, int64(from.Size), older); err != nil { //nolint:gosec // far below 2^63
			return false, fmt.Errorf("the hashes of the log contradict each other: %w", err)
		}
	}
	return older == from.Root, nil
}

// Continues reports whether the checkpoint continues the earlier ones, according to the added commits. It returns an error if they do not match the
// checkpoint, because then they prove nothing.
func (v *Verifier) Continues() (bool, error) {
	if !v.complete || v.good != v.want.Size {
		return false, fmt.Errorf("the commits do not match the checkpoint at %d, so they cannot be used for this check", v.want.Size)
	}
	return v.bad == 0, nil
}

// ProveConsistency returns the proof that the tree of size to begins with the tree of size from (RFC 6962, section 2.1.2).
func ProveConsistency(tree *Tree, from, to uint64) (tlog.TreeProof, error) {
	if from == 0 || from == to {
		return nil, nil
	}
	return tlog.ProveTree(int64(to), int64(from), tree) //nolint:gosec // far below 2^63
}
