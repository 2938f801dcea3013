package page

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"scute.dev/cmd/ctl/audit"
	"scute.dev/eventlog/seal"
	"scute.dev/ui/feed"
)

func proofLink(seq uint64) string {
	return "/proof?" + url.Values{"commit": {strconv.FormatUint(seq, 10)}}.Encode()
}

// ProofFile returns the file name of a commit's proof.
func ProofFile(seq uint64) string { return fmt.Sprintf("commit-%d.tlog-proof", seq) }

// Prove creates the proof of a commit.
func (s *Site) Prove(ctx context.Context, seq uint64) (*audit.Proof, error) {
	if head := s.feed.Commits.Head(); s.Prover == nil || seq == 0 || seq > head {
		return nil, fmt.Errorf("%w: commit %d, the last commit is %d", feed.ErrNotFound, seq, head)
	}
	return s.Prover.Prove(ctx, s.feed.Commits, seq)
}

// proven is the page with a proof, or with the reason why there is none.
type proven struct {
	Seq                   uint64
	Proof                 *audit.Proof
	Leaf, Wrong           string
	Event, File, Download string
	Check, Command        string
}

// Proof renders the page with the proof of a commit. If wrong is not nil, it renders this error
// instead.
func (s *Site) Proof(seq uint64, proof *audit.Proof, wrong error) ([]byte, error) {
	r, err := s.feed.Commits.Read(seq)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", feed.ErrNotFound, err)
	}
	p := proven{
		Seq: seq, Leaf: new(seal.Hasher).Hash(r).String(), Event: eventLink(seq, 0), File: ProofFile(seq),
		Check: s.kit.Env.Hint("audit", "check", ProofFile(seq), "--key", "scute.pub"), Command: s.Prover.Command(seq),
	}
	if wrong != nil {
		p.Wrong = wrong.Error()
	} else {
		p.Proof = proof
		p.Download = proofLink(seq) + "&as=file"
	}
	return render("proof.html", p)
}
