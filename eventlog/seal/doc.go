// Package seal proves that nothing in the event log was changed.
//
// Each stored commit is a leaf of a Merkle tree (RFC 6962), in the order of the log: the commit with sequence s is the leaf
// with index s-1. A Checkpoint is the size and the root of the tree, signed with an ed25519 key (C2SP tlog-checkpoint). With the
// public key and one checkpoint, anybody can tell whether a log, or an export of it, still holds what was sealed. With the leaf
// hashes, which Tree keeps beside the log, a Verifier also tells which commits were changed, removed, added or moved.
//
// Tree appends at a cost that does not grow: it keeps the right edge of the tree in memory, one hash for each power of two.
//
// What never may live here: where checkpoints are published, and anything of Kubernetes.
package seal
