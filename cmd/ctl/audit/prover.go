package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
)

// Prover creates the same proofs as `audit prove`, for a program that has already read the log.
type Prover struct {
	o *options
	// proving serializes proofs, each of which reads the whole log.
	proving sync.Mutex
}

// NewProver returns a Prover. An empty key or checkpoint is read from the cluster, as in `audit
// prove`. export is the file that the log was read from, or "".
func NewProver(k *kit.Kit, key, checkpoint, export string) *Prover {
	return &Prover{o: &options{Kit: k, key: key, checkpoint: checkpoint, export: export}}
}

type commits interface {
	Head() uint64
	Replay(after, until uint64, fn func(eventlog.Record) error) error
}

// Proof is the proof of one commit.
type Proof struct {
	// Text is the complete proof. It ends with Signed.
	Text []byte
	// Checkpoint is the checkpoint of the proof, and Signed its signed note.
	Checkpoint seal.Checkpoint
	Signed     []byte
}

// Prove creates the proof of a commit by the newest checkpoint. It reads all covered commits.
func (p *Prover) Prove(ctx context.Context, commits commits, seq uint64) (*Proof, error) {
	p.proving.Lock()
	defer p.proving.Unlock()
	if p.unsealed() {
		return nil, errors.New("logs of local runs are not sealed: only a daemon signs checkpoints")
	}
	found, err := p.o.published(ctx)
	if err != nil {
		return nil, err
	}
	switch size := found.newest.Size; {
	case seq > size && p.o.checkpoint == "":
		return nil, fmt.Errorf("commit %d is not sealed yet: the newest checkpoint covers commits 1 to %d; the daemon publishes one every audit.interval (a value of its chart)", seq, size)
	case size > commits.Head():
		return nil, fmt.Errorf("the checkpoint covers commits 1 to %d, but only %d were read: use an export that is newer than the checkpoint", size, commits.Head())
	}
	text, err := found.prove(seq, func(prover *seal.Prover) error {
		return commits.Replay(0, found.newest.Size, func(r eventlog.Record) error {
			prover.Add(r)
			return ctx.Err()
		})
	})
	if err != nil {
		return nil, err
	}
	return &Proof{Text: text, Checkpoint: found.newest, Signed: found.signed}, nil
}

// unsealed reports whether the log can have no checkpoints. That is so for the log of local runs,
// which no daemon signs.
func (p *Prover) unsealed() bool { return p.o.Flags.Local && p.o.key == "" && p.o.checkpoint == "" }

// Command returns the command that creates the same proof, or "" if the log is not sealed.
func (p *Prover) Command(seq uint64) string {
	if p.unsealed() {
		return ""
	}
	words := []string{"audit", "prove", strconv.FormatUint(seq, 10)}
	key, checkpoint := p.o.key, p.o.checkpoint
	if p.o.export != "" {
		words = append(words, "--export", p.o.export)
	}
	if p.o.export != "" || p.o.Flags.LogOnly() { // this command does not read from the cluster
		key, checkpoint = cmp.Or(key, "scute.pub"), cmp.Or(checkpoint, "checkpoint")
	}
	for _, option := range [][2]string{{"--key", key}, {"--checkpoint", checkpoint}} {
		if option[1] != "" {
			words = append(words, option[:]...)
		}
	}
	return p.o.Hint("", words...)
}

// prove creates the proof of a commit. each must pass all commits to the prover, in order.
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
