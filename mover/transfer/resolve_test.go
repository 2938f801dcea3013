package transfer

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// loseLog replaces the log with one that only records that the move started.
func (f *fakes) loseLog() {
	spec := f.state.Spec
	*f.state = mover.State{}
	f.state.Apply(mover.Requested{Spec: spec, Home: mover.Home{Log: "another"}}, f.now)
	f.state.Apply(mover.LogLost{Log: logID, Phase: mover.PhaseDeleting, Sequence: 42}, f.now)
	f.state.Apply(mover.Claimed{Holder: "two"}, f.now)
}

// hashPlan sets the hashes of the plan to the content of the source.
func (f *fakes) hashPlan() {
	f.t.Helper()
	for i := range f.state.Plan {
		hash, err := mover.ContentHash(f.src.get(f.state.Plan[i].Ref))
		if err != nil {
			f.t.Fatal(err)
		}
		f.state.Plan[i].Hash = hash
	}
}

// interruptDeletion deletes the owned objects at the source, and crashes before the deletion of the Cluster.
func (f *fakes) interruptDeletion() {
	f.t.Helper()
	ctx, die := context.WithCancel(f.t.Context())
	f.src.hook = func(r *http.Request) {
		if r.Method == http.MethodDelete {
			die()
		}
	}
	if _, err := f.transfer.Perform(ctx, f.state, mover.DeleteSource, func(mover.Outcome) error { return nil }); err == nil {
		f.t.Fatal("the process did not die")
	}
	f.src.hook = nil
	f.src.drop(f.machine)
}

func TestTheLogIsLostWhileTheSourceIsEmptied(t *testing.T) {
	f := moved(t, mover.Verified{})
	f.interruptDeletion()
	f.loseLog()
	message, next := f.step()
	f.checkStranded(message, next, "only on the target", "--action forward", "fleet/a-1")
	f.checkExists(f.src, f.cluster)

	f.state.Apply(mover.Resolved{Direction: mover.Back}, f.now)
	message, next = f.step()
	f.checkStranded(message, next, "cannot go back", "--action forward")
	f.checkExists(f.dst, f.machine)
	f.checkPaused(f.src, f.cluster, true)

	f.state.Apply(mover.Resolved{Direction: mover.Forward}, f.now)
	f.run(mover.None)
	if f.state.Phase != mover.PhaseSucceeded || f.src.get(f.cluster) != nil {
		t.Errorf("phase = %s, the Cluster is at the source: %t", f.state.Phase, f.src.get(f.cluster) != nil)
	}
	f.checkExists(f.dst, f.machine)
	f.checkPaused(f.dst, f.cluster, false)
	for key := range f.dst.get(f.cluster).GetAnnotations() {
		t.Errorf("annotation %s remains", key)
	}
}

func TestTheLogIsLostBeforeTheSourceIsEmptied(t *testing.T) {
	f := moved(t, mover.AllCreated{})
	f.loseLog()
	message, next := f.step()
	f.checkStranded(message, next, "the source has every object", "--action back")
	f.state.Apply(mover.Resolved{Direction: mover.Forward}, f.now)
	f.checkStranded(f.step())

	f.state.Apply(mover.AbortRequested{Reason: "enough"}, f.now)
	f.state.Apply(mover.Resolved{Direction: mover.Back}, f.now)
	f.run(mover.None)
	if f.state.Phase != mover.PhaseRolledBack || f.dst.get(f.cluster) != nil || f.dst.get(f.machine) != nil {
		t.Errorf("phase = %s, copies remain on the target", f.state.Phase)
	}
	f.checkPaused(f.src, f.cluster, false)
}

func TestTheLogIsLostBeforeAnythingWasDone(t *testing.T) {
	f := moved(t, mover.Claimed{})
	f.src.merge(f.cluster, obj{"metadata": obj{"annotations": nil}})
	f.dst.drop(f.cluster)
	f.dst.drop(f.machine)
	f.loseLog()
	f.step()
	if f.state.Phase != mover.PhasePreflight || f.state.Lost != nil {
		t.Errorf("phase = %s, failure %q, want the move to start again", f.state.Phase, f.state.TransientFailure.Message)
	}
}

// TestTheLogIsLostAfterTheLastMark checks that a move whose log is lost after its last annotation was removed can be
// ended with either resolution, so that the Move can be deleted.
func TestTheLogIsLostAfterTheLastMark(t *testing.T) {
	for _, way := range []mover.Direction{mover.Back, mover.Forward} {
		f := moved(t, mover.Verified{})
		f.run(mover.AwaitResume)
		f.loseLog()
		message, next := f.step()
		f.checkStranded(message, next, "delete this Move")
		f.state.Apply(mover.Resolved{Direction: way}, f.now)
		message, next = f.step()
		if f.state.Phase != mover.PhaseFailed || !f.state.Finished() || !strings.Contains(message, "the move may be complete already") || !strings.Contains(next, "check the target") {
			t.Errorf("resolution %s: phase %s, message %q, next %q", way, f.state.Phase, message, next)
		}
		f.checkExists(f.dst, f.cluster)
		f.checkExists(f.dst, f.machine)
	}
}

// TestTheTargetIsWipedWhileTheSourceIsEmptied checks that no resolution succeeds if the target lost its copies while
// the source was being emptied: neither side has all objects.
func TestTheTargetIsWipedWhileTheSourceIsEmptied(t *testing.T) {
	f := moved(t, mover.Verified{})
	f.interruptDeletion()
	f.dst.drop(f.cluster)
	f.dst.drop(f.machine)
	message, next := f.step()
	f.checkStranded(message, next, "--action back")
	for _, way := range []mover.Direction{mover.Back, mover.Forward} {
		f.state.Apply(mover.Resolved{Direction: way}, f.now)
		message, next = f.step()
		f.checkStranded(message, next, "cannot go "+string(way), "neither direction keeps every object", "abandon")
		f.checkPaused(f.src, f.cluster, true)
	}
	f.state.Apply(mover.TargetAbandoned{}, f.now)
	f.step()
	if f.state.Phase != mover.PhaseFailed || !f.state.Finished() {
		t.Errorf("phase = %s, failure %q", f.state.Phase, f.state.TransientFailure.Message)
	}
	f.checkPaused(f.src, f.cluster, true)
}

// TestTheLogWentBackBeforeThePause checks that a move whose log lost its records since the pause, and that finds its
// own annotation, is stranded rather than refused.
func TestTheLogWentBackBeforeThePause(t *testing.T) {
	f := moved(t, mover.Claimed{Holder: "one"})
	f.step()
	message, next := f.step()
	f.checkStranded(message, next, "--action back")
	f.checkPaused(f.src, f.cluster, true)
}

// TestTheSameMoveInAnotherLog checks that a move of the same name in the log of another installation does not touch
// this move's copies.
func TestTheSameMoveInAnotherLog(t *testing.T) {
	f := moved(t, mover.AllCreated{})
	other := mover.Spec{Namespace: "fleet", Name: "go", Clusters: []string{"a"}}
	theirs := &mover.State{}
	theirs.Apply(mover.Requested{Spec: other, Home: mover.Home{Log: "another"}}, f.now)
	theirs.Apply(mover.Claimed{Holder: "two"}, f.now)
	o, err := f.transfer.Perform(t.Context(), theirs, mover.RunPreflight, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	preflight, _ := o.(mover.PreflightDone)
	for _, finding := range preflight.Findings {
		found = found || finding.Severity == mover.Error && strings.Contains(finding.Message, "event log "+logID)
	}
	if !found {
		t.Errorf("preflight = %+v, want a finding with the log that holds the Cluster", o)
	}
	theirs.Plan, theirs.Phase, theirs.Roots = f.state.Plan, mover.PhaseRollingBack, f.state.Roots
	for _, step := range []mover.Step{mover.ClearTarget, mover.RestoreSource} {
		if _, err := f.transfer.Perform(t.Context(), theirs, step, func(mover.Outcome) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	f.checkExists(f.dst, f.cluster)
	f.checkExists(f.dst, f.machine)
	f.checkPaused(f.src, f.cluster, true)
}

// disconnectTarget makes the target unreachable.
func (f *fakes) disconnectTarget() {
	f.transfer.target = nil
	f.transfer.Dial = func(context.Context, mover.Spec) (*kube.Cluster, error) { return nil, errors.New("connection refused") }
}

// TestRollbackWithoutTheTarget checks that a rollback does not need the target if nothing was sent to it.
func TestRollbackWithoutTheTarget(t *testing.T) {
	f := moved(t, mover.AllAcknowledged{})
	for _, ref := range []object.Ref{f.cluster, f.machine} {
		f.src.merge(ref, obj{"status": obj{"conditions": []any{obj{"type": "Paused", "status": "True"}}}})
	}
	f.step()
	if f.state.Phase != mover.PhaseCreating {
		t.Fatalf("phase = %s, failure %q", f.state.Phase, f.state.TransientFailure.Message)
	}
	f.disconnectTarget()
	f.state.Apply(mover.AbortRequested{}, f.now)
	f.run(mover.None)
	if f.state.Phase != mover.PhaseRolledBack {
		t.Errorf("phase = %s, failure %q", f.state.Phase, f.state.TransientFailure.Message)
	}
	f.checkPaused(f.src, f.cluster, false)
}

// TestAbandonTheTarget checks that a user can end a move whose target is lost.
func TestAbandonTheTarget(t *testing.T) {
	t.Run("the source is whole", func(t *testing.T) {
		f := moved(t, mover.AllCreated{})
		f.disconnectTarget()
		f.state.Apply(mover.AbortRequested{}, f.now)
		f.step()
		if f.state.Finished() {
			t.Fatalf("phase = %s without the target, which was not abandoned", f.state.Phase)
		}
		f.state.Apply(mover.TargetAbandoned{Reason: "it burned down"}, f.now)
		message, next := f.step()
		if f.state.Phase != mover.PhaseRolledBack || !strings.Contains(message, "it burned down") || !strings.Contains(next, object.MoveAnnotation) {
			t.Errorf("phase = %s, message %q, next %q", f.state.Phase, message, next)
		}
		f.checkPaused(f.src, f.cluster, false)
	})
	t.Run("the source was half emptied", func(t *testing.T) {
		f := moved(t, mover.Verified{})
		f.interruptDeletion()
		f.disconnectTarget()
		f.state.Apply(mover.TargetAbandoned{Reason: "it burned down"}, f.now)
		message, next := f.step()
		if f.state.Phase != mover.PhaseFailed || !f.state.Finished() || !strings.Contains(message, "fleet/a-1") || next == "" {
			t.Errorf("phase = %s, message %q, next %q", f.state.Phase, message, next)
		}
		f.checkPaused(f.src, f.cluster, true)
	})
}

// TestNoCopyIsRemovedWhileTheSourceIsBeingEmptied checks that a rollback removes no copies if the source is annotated
// as being emptied, which a log that lost its newest events does not know.
func TestNoCopyIsRemovedWhileTheSourceIsBeingEmptied(t *testing.T) {
	f := moved(t, mover.AllCreated{})
	f.src.merge(f.cluster, obj{"metadata": obj{"annotations": obj{object.EmptyingAnnotation: moveID}}})
	f.state.Apply(mover.AbortRequested{}, f.now)
	message, next := f.step()
	f.checkStranded(message, next, "started to delete its objects", "--action forward")
	f.checkExists(f.dst, f.cluster)
	f.checkExists(f.dst, f.machine)

	f.state.Apply(mover.Resolved{Direction: mover.Forward}, f.now)
	f.run(mover.AwaitResume)
	f.checkPaused(f.dst, f.cluster, false)
}

// TestNoPlanOfASourceThatIsBeingEmptied checks that no plan is made of a source that is being emptied. It would lack
// objects that are only on the target, and a rollback would remove their owners and thereby, through the garbage
// collector, these objects.
func TestNoPlanOfASourceThatIsBeingEmptied(t *testing.T) {
	f := moved(t, mover.Verified{})
	f.interruptDeletion()
	older := moved(t, mover.Paused{})
	older.src, older.dst, older.transfer = f.src, f.dst, f.transfer
	older.state.Roots = f.state.Roots
	older.state.Apply(mover.Acknowledged{Objects: map[object.Ref]pause.Signal{f.cluster: pause.Assumed}}, f.now)
	older.state.Apply(mover.AllAcknowledged{}, f.now)
	message, next := older.step()
	older.checkStranded(message, next, "started to delete at the source", "fleet/a", "--action forward")
	if len(older.state.Plan) > 0 {
		t.Errorf("%d objects are planned, want none", len(older.state.Plan))
	}
}

// TestAbandonAfterTheSourceWasEmptied checks that a move that is abandoned after its log was lost reports Clusters that
// are missing at the source.
func TestAbandonAfterTheSourceWasEmptied(t *testing.T) {
	f := moved(t, mover.Verified{})
	f.run(mover.RestorePauses)
	f.loseLog()
	f.disconnectTarget()
	f.state.Apply(mover.TargetAbandoned{Reason: "it burned down"}, f.now)
	if message, _ := f.step(); f.state.Phase != mover.PhaseFailed || !strings.Contains(message, "Cluster fleet/a is not at the source") {
		t.Errorf("phase = %s, message %q", f.state.Phase, message)
	}
}

// TestALostMoveBeginsAgainFromNothing checks that a move whose log lost events starts again with an empty state if
// neither cluster has a trace of it.
func TestALostMoveBeginsAgainFromNothing(t *testing.T) {
	f := moved(t, mover.AllCreated{})
	f.src.merge(f.cluster, obj{"metadata": obj{"annotations": nil}, "spec": obj{"paused": nil}})
	f.dst.drop(f.cluster)
	f.dst.drop(f.machine)
	f.state.Apply(mover.LogLost{Log: logID, Phase: f.state.Phase}, f.now)
	f.step()
	if s := f.state; s.Phase != mover.PhasePreflight || len(s.Roots)+len(s.Plan)+len(s.Created) > 0 || s.Posted || s.Holder != "one" {
		t.Errorf("phase = %s, failure %q, %d roots, %d planned, %d created", s.Phase, s.TransientFailure.Message, len(s.Roots), len(s.Plan), len(s.Created))
	}
}

// TestACopyThatARollbackReleasedIsNotTakenForWhole checks that a copy that a rollback had released, which the log no
// longer records, causes a rollback: it lacks its finalizers and may be deleted.
func TestACopyThatARollbackReleasedIsNotTakenForWhole(t *testing.T) {
	for _, step := range []mover.Step{mover.CreateCopies, mover.VerifyCopies} {
		t.Run(string(step), func(t *testing.T) {
			f := moved(t, mover.AllCreated{})
			if step == mover.CreateCopies {
				f.state.AllCreated = false
				delete(f.state.Created, f.machine)
			}
			f.dst.merge(f.machine, obj{"metadata": obj{"finalizers": nil, "annotations": obj{object.DeleteForMoveAnnotation: ""}}})
			f.hashPlan()
			f.step()
			if message, _ := mover.Explain(f.state); f.state.Phase != mover.PhaseRollingBack || !strings.Contains(message, "has removed") {
				t.Fatalf("phase = %s, message %q", f.state.Phase, message)
			}
			f.run(mover.None)
			if f.dst.get(f.machine) != nil {
				t.Error("the copy remains")
			}
			f.checkPaused(f.src, f.cluster, false)
		})
	}
}

// TestTheMarkComesOffAClassOfAnotherNamespace checks that after the log is lost and the source emptied, the annotation
// is also removed from the copy of a ClusterClass in another namespace. Otherwise later moves that need the class would
// wait for this move.
func TestTheMarkComesOffAClassOfAnotherNamespace(t *testing.T) {
	f := moved(t, mover.Verified{})
	class := object.Ref{Group: object.CoreGroup, Kind: "ClusterClass", Namespace: "classes", Name: "k"}
	f.dst.put(class, obj{"metadata": obj{"annotations": obj{object.MoveAnnotation: moveID, object.LogAnnotation: logID}}})
	f.dst.merge(f.cluster, obj{"spec": obj{"topology": obj{"classRef": obj{"name": "k", "namespace": "classes"}}}})
	f.run(mover.RestorePauses)
	f.loseLog()
	f.state.Apply(mover.Resolved{Direction: mover.Forward}, f.now)
	f.run(mover.None)
	if marks := f.dst.get(class).GetAnnotations(); f.state.Phase != mover.PhaseSucceeded || len(marks) > 0 {
		t.Errorf("phase = %s, failure %q, annotations of the class %v", f.state.Phase, f.state.TransientFailure.Message, marks)
	}
}
