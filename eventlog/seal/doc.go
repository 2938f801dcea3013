// Package seal proves that no commit in the event log was changed.
//
// Each stored commit is a leaf of a Merkle tree (RFC 6962), in the order of the log: the commit
// with sequence s is the leaf with index s-1. A Checkpoint is the size and the root of the tree,
// signed with an ed25519 key (C2SP tlog-checkpoint). With the public key and one checkpoint,
// anybody can check whether a log, or an export of it, still contains the sealed commits. With the
// leaf hashes, which Tree keeps beside the log, a Verifier also reports which commits were changed
// or removed.
//
// Tree appends at a constant cost: it keeps the right edge of the tree in memory, one hash for each power of two.
//
// This package never contains where checkpoints are published, or anything of Kubernetes.
package seal
