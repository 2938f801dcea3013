package seal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"scute.dev/eventlog"
)

// proofVersion is the first line of a proof (C2SP tlog-proof).
const proofVersion = "c2sp.org/tlog-proof@v1"

// ErrProof is returned for an invalid proof.
var ErrProof = errors.New("the proof is not valid")

// Prover creates the proof that a log contains a commit, from the log's commits in order. It keeps
// a logarithmic number of hashes.
type Prover struct {
	checkpoint Checkpoint
	signed     []byte
	seq        uint64

	sum    Sum
	next   int64 // the index of the next hash in the order of tlog.StoredHashIndex
	needed map[int64]tlog.Hash
	leaf   []byte
}

// NewProver returns a Prover for the commit with this sequence. signed is c as a signed note.
func NewProver(c Checkpoint, signed []byte, seq uint64) (*Prover, error) {
	if seq == 0 || seq > c.Size {
		return nil, fmt.Errorf("commit %d is not covered by the checkpoint, which covers 1 to %d: use a newer checkpoint", seq, c.Size)
	}
	p := &Prover{checkpoint: c, signed: signed, seq: seq, needed: make(map[int64]tlog.Hash)}
	_, err := p.prove()
	return p, err
}

// prove returns the proof made of the hashes that are known so far. Unknown hashes are zero. It
// records which hashes the proof needs.
func (p *Prover) prove() (tlog.RecordProof, error) {
	return tlog.ProveRecord(int64(p.checkpoint.Size), int64(p.seq-1), tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) { //nolint:gosec // far below 2^63
		out := make([]tlog.Hash, len(indexes))
		for i, x := range indexes {
			out[i] = p.needed[x]
			p.needed[x] = out[i]
		}
		return out, nil
	}))
}

// Add adds the next commit of the log.
func (p *Prover) Add(r eventlog.Record) {
	if r.Seq != p.sum.edge.size+1 || r.Seq > p.checkpoint.Size {
		return // the root will not match, which shows that a commit is missing
	}
	if r.Seq == p.seq {
		p.leaf = AppendLeaf(nil, r)
	}
	p.sum.Add(r)
	for _, h := range p.sum.spare {
		if _, needed := p.needed[p.next]; needed {
			p.needed[p.next] = h
		}
		p.next++
	}
}

// Proof returns the proof in the text form of C2SP tlog-proof. The extra data of the proof is the
// leaf.
func (p *Prover) Proof() ([]byte, error) {
	if p.sum.Checkpoint(p.checkpoint.LogID) != p.checkpoint {
		return nil, fmt.Errorf("%w: the log does not match the checkpoint at %d: verify it", ErrProof, p.checkpoint.Size)
	}
	hashes, err := p.prove()
	if err != nil {
		return nil, fmt.Errorf("proving commit %d: %w", p.seq, err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\nextra %s\nindex %d\n", proofVersion, base64.StdEncoding.EncodeToString(p.leaf), p.seq-1)
	for _, h := range hashes {
		fmt.Fprintln(&out, h)
	}
	fmt.Fprintf(&out, "\n%s", p.signed)
	return out.Bytes(), nil
}

// CheckProof returns the commit that a proof shows to be in the log of the key, and the checkpoint
// of the proof. If the text cannot be parsed, the error is neither ErrProof nor ErrSignature.
func CheckProof(text []byte, key PublicKey) (eventlog.Record, Checkpoint, error) {
	head, signed, ok := bytes.Cut(text, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	if !ok || len(lines) < 3 || lines[0] != proofVersion {
		return eventlog.Record{}, Checkpoint{}, fmt.Errorf("reading the proof: it must begin with the line %s and end with a checkpoint", proofVersion)
	}
	extra, hasLeaf := strings.CutPrefix(lines[1], "extra ")
	number, hasIndex := strings.CutPrefix(lines[2], "index ")
	leaf, err := base64.StdEncoding.DecodeString(extra)
	index, bad := strconv.ParseInt(number, 10, 62)
	if err = errors.Join(err, bad); err != nil || !hasLeaf || !hasIndex || index < 0 {
		return eventlog.Record{}, Checkpoint{}, fmt.Errorf("reading the proof: its second line must be extra and its third one index: %w", err)
	}
	var hashes tlog.RecordProof
	for _, line := range lines[3:] {
		h, err := tlog.ParseHash(line)
		if err != nil {
			return eventlog.Record{}, Checkpoint{}, fmt.Errorf("reading the proof: %q is not a hash", line)
		}
		hashes = append(hashes, h)
	}
	c, err := OpenCheckpoint(signed, key)
	if err != nil {
		return eventlog.Record{}, Checkpoint{}, err
	}
	r, err := ParseLeaf(leaf)
	if err != nil {
		return eventlog.Record{}, c, fmt.Errorf("reading the proof: its extra data: %w", err)
	}
	if err := tlog.CheckRecord(hashes, int64(c.Size), c.Root, index, tlog.RecordHash(leaf)); err != nil { //nolint:gosec // far below 2^63
		return r, c, fmt.Errorf("%w: the commit is not in the log that the checkpoint at %d signs: %w", ErrProof, c.Size, err)
	}
	if r.Seq != uint64(index)+1 {
		return r, c, fmt.Errorf("%w: the commit has the sequence %d but is at the position of %d", ErrProof, r.Seq, index+1)
	}
	return r, c, nil
}

// Continues reports whether the log of the checkpoint to begins with the commits of the earlier
// checkpoint from. The tree need not be trusted: if it does not match the checkpoint to, it proves
// nothing, and Continues returns an error.
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

// Continues reports whether the log of the checkpoint begins with the commits of the earlier
// checkpoints. If the added commits do not match the checkpoint, they prove nothing, and Continues
// returns an error.
func (v *Verifier) Continues() (bool, error) {
	if !v.complete || v.good != v.want.Size {
		return false, fmt.Errorf("the commits do not match the checkpoint at %d, so they cannot be used for this check", v.want.Size)
	}
	return v.bad == 0, nil
}

// ProveConsistency returns the proof that the tree of size to begins with the tree of size from
// (RFC 6962, section 2.1.2).
func ProveConsistency(tree *Tree, from, to uint64) (tlog.TreeProof, error) {
	if from == 0 || from == to {
		return nil, nil
	}
	return tlog.ProveTree(int64(to), int64(from), tree) //nolint:gosec // far below 2^63
}
