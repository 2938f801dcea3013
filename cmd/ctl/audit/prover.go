package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
)

// Prover makes the proofs of `audit prove` for a program that has read the log already.
type Prover struct {
	o    *options
	turn chan struct{}
}

// NewProver takes the key and the checkpoint as the options of `audit prove` have them: "" is what the cluster publishes. export is the file
// that the log was read from, if it was one.
func NewProver(k *kit.Kit, key, checkpoint, export string) *Prover {
	return &Prover{o: &options{Kit: k, key: key, checkpoint: checkpoint, export: export}, turn: make(chan struct{}, 1)}
}

// Commits are those of a log, from the first one on.
type Commits interface {
	Head() uint64
	Replay(after, until uint64, fn func(eventlog.Record) error) error
}

// Proof is the proof of one commit.
type Proof struct {
	// Text is the proof whole. It ends with Signed.
	Text []byte
	// By is the checkpoint that it is proven by, and Signed what was published of it.
	By     seal.Checkpoint
	Signed []byte
}

// Prove makes the proof of a commit by the newest checkpoint. It reads all commits that the checkpoint covers; one proof is made at a time.
func (p *Prover) Prove(ctx context.Context, commits Commits, seq uint64) (*Proof, error) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: another proof is being made", ctx.Err())
	}
	defer func() { <-p.turn }()
	if p.unsealed() {
		return nil, errors.New("the log of local runs is not sealed: the daemon seals the log that it drives")
	}
	found, err := p.o.published(ctx)
	if err != nil {
		return nil, err
	}
	switch size := found.newest.Size; {
	case seq > size && p.o.checkpoint == "":
		return nil, fmt.Errorf("commit %d is not sealed yet: the newest checkpoint covers 1 to %d, and the daemon publishes one at each audit.interval of its chart", seq, size)
	case size > commits.Head():
		return nil, fmt.Errorf("the checkpoint covers the commits 1 to %d, and only %d are read here: is the export newer than the checkpoint?", size, commits.Head())
	}
	text, err := found.prove(seq, func(prover *seal.Prover) error {
		return commits.Replay(0, found.newest.Size, func(r eventlog.Record) error {
			prover.Add(seal.MessageOf(r))
			return ctx.Err()
		})
	})
	if err != nil {
		return nil, err
	}
	return &Proof{Text: text, By: found.newest, Signed: found.signed}, nil
}

// unsealed says that nobody seals the log.
func (p *Prover) unsealed() bool { return p.o.Flags.Local && p.o.key == "" && p.o.checkpoint == "" }

// Command makes the same proof in a terminal; "" where none can be made.
func (p *Prover) Command(seq uint64) string {
	if p.unsealed() {
		return ""
	}
	words := []string{"audit", "prove", strconv.FormatUint(seq, 10)}
	key, checkpoint := p.o.key, p.o.checkpoint
	if p.o.export != "" {
		words = append(words, "--export", p.o.export)
	}
	if p.o.export != "" || p.o.Flags.LogAlone() { // then the cluster is not asked
		key, checkpoint = cmp.Or(key, "scute.pub"), cmp.Or(checkpoint, "checkpoint")
	}
	for _, option := range [][2]string{{"--key", key}, {"--checkpoint", checkpoint}} {
		if option[1] != "" {
			words = append(words, option[:]...)
		}
	}
	return p.o.Hint("", words...)
}

// prove makes the proof of a commit. each hands over all commits of the log in their order.
func (p *published) prove(seq uint64, each func(prover *seal.Prover) error) ([]byte, error) {
	prover, err := seal.NewProver(p.newest, p.signed, seq)
	if err != nil {
		return nil, err
	}
	if err := each(prover); err != nil {
		return nil, err
	}
	return prover.Proof()
}
