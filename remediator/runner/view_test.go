package runner

import (
	"testing"
	"time"

	"scute.dev/remediator"
)

// TestForgottenAtTheVeryCommit checks that the owner of the commit that makes the view forget counts as forgotten,
// because the view may have dropped it. Its next append then records the owner again.
func TestForgottenAtTheVeryCommit(t *testing.T) {
	v, owner := NewRemediations(), remediator.Owner{Namespace: "fleet", Name: "md", UID: "0123456789"}
	v.owners[owner.ID()] = &ownerEntry{state: remediator.State{Owner: owner}, seq: 1024}
	if v.isForgotten(owner.ID(), 1024) {
		t.Error("forgot = true before Forget was called")
	}
	for _, seq := range []uint64{1024, 2048} {
		v.Forget(seq, time.Now())
		if !v.isForgotten(owner.ID(), 1024) {
			t.Errorf("after Forget at %d: forgot = false", seq)
		}
	}
}
