package runner

import (
	"testing"
	"time"

	"scute.dev/remediator"
)

// TestForgottenAtTheVeryCommit: the commit that makes the view forget may itself be about an owner of which nothing counts any more. The next append
// records the owner again, because the view may have dropped it by then.
func TestForgottenAtTheVeryCommit(t *testing.T) {
	v, owner := NewRemediations(nil), remediator.Owner{Namespace: "fleet", Name: "md", UID: "0123456789"}
	v.owners[owner.ID()] = &logged{state: remediator.State{Owner: owner}, seq: 1024}
	if v.forgot(owner.ID(), 1024) {
		t.Error("it is forgotten before the view was told to forget")
	}
	for _, seq := range []uint64{1024, 2048} {
		v.Forget(seq, time.Now())
		if !v.forgot(owner.ID(), 1024) {
			t.Errorf("at %d, it is not known that the view forgets the owner", seq)
		}
	}
}
