package act

import (
	"testing"

	"scute.dev/api/v1alpha1"
)

// TestTakenBack: what an operator took off is noticed, also if only one of both. A request that cannot be read was seen as a hold, and
// goes with its machine's recovery like any other.
func TestTakenBack(t *testing.T) {
	seen := v1alpha1.SurgeRemediationSpec{Abort: true, Hold: &v1alpha1.RemediationHold{}}
	r := &v1alpha1.SurgeRemediation{Spec: seen}
	if takenBack(seen, r) {
		t.Error("it says what it said")
	}
	r.Spec.Abort = false
	if !takenBack(seen, r) {
		t.Error("the abort was taken off")
	}
	r.Spec = v1alpha1.SurgeRemediationSpec{Abort: true}
	if !takenBack(seen, r) {
		t.Error("the hold was taken off")
	}
	seen.Abort, r.Spec.Abort = false, false
	r.Unreadable.Spec = &v1alpha1.UnreadablePart{}
	if takenBack(seen, r) {
		t.Error("it cannot be read, as it was seen")
	}
}
