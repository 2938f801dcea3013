package transfer

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

const (
	moveID = "fleet/go/01234567"
	logID  = "00112233aabbccdd"
)

func capi(kind, name string) object.Ref {
	return object.Ref{Group: object.CoreGroup, Kind: kind, Namespace: "fleet", Name: name}
}

// fakes is a move of one Cluster with one Machine between two API servers.
type fakes struct {
	t        *testing.T
	src, dst *fakeAPI
	transfer *Transfer
	state    *mover.State
	events   []mover.Event // events that led to the state
	now      time.Time

	cluster, machine object.Ref
}

// moved returns a move in the state after the given event. Both sides have the Cluster and its Machine, as after the
// creation of the copies and before the first deletion.
func moved(t *testing.T, until mover.Event) *fakes {
	t.Helper()
	f := &fakes{t: t, src: newFakeAPI(t), dst: newFakeAPI(t), state: &mover.State{}, now: time.Now(), cluster: capi("Cluster", "a"), machine: capi("Machine", "a-1")}
	mark := func(more obj) obj {
		marks := obj{object.MoveAnnotation: moveID, object.LogAnnotation: logID}
		maps.Copy(marks, more)
		return marks
	}
	cluster := func(annotations obj) obj {
		return obj{"metadata": obj{"annotations": annotations}, "spec": obj{"paused": true}}
	}
	machine := func(annotations obj, owner types.UID) obj {
		return obj{"metadata": obj{
			"annotations": annotations, "finalizers": []any{"machine.cluster.x-k8s.io"}, "labels": obj{"cluster.x-k8s.io/cluster-name": "a"},
			"ownerReferences": []any{obj{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "a", "uid": string(owner)}},
		}}
	}
	here := f.src.put(f.cluster, cluster(mark(nil)))
	items := []mover.Item{
		{Ref: f.cluster, Version: "v1beta2", UID: here, Cluster: "a"},
		{Ref: f.machine, Version: "v1beta2", UID: f.src.put(f.machine, machine(obj{}, here)), Level: 1, Cluster: "a"},
	}
	// The older contract leaves the other conditions to the tests.
	f.src.merge(f.cluster, obj{"status": obj{
		"infrastructureReady": true, "v1beta2": obj{"conditions": []any{obj{"type": "ControlPlaneInitialized", "status": "True"}}},
	}})
	f.src.merge(f.machine, obj{"status": obj{"nodeRef": obj{"name": "n"}}})
	there := f.dst.put(f.cluster, cluster(mark(obj{object.OriginAnnotation: string(here)})))
	made := map[object.Ref]types.UID{
		f.cluster: there, f.machine: f.dst.put(f.machine, machine(mark(obj{object.OriginAnnotation: string(items[1].UID)}), there)),
	}
	for copied := range made { // its controller has acknowledged it
		f.dst.merge(copied, obj{"status": obj{"conditions": []any{obj{"type": "Paused", "status": "True"}}}})
	}
	f.transfer = &Transfer{
		ID: moveID, Source: f.src.cluster(t, "source"),
		Dial: func(context.Context, mover.Spec) (*kube.Cluster, error) { return f.dst.cluster(t, "target"), nil },
	}
	for _, e := range []mover.Event{
		mover.Requested{Spec: mover.Spec{Namespace: "fleet", Name: "go", Clusters: []string{"a"}, Create: mover.Duration(time.Hour), Resume: mover.Duration(time.Hour)}, Home: mover.Home{Log: logID}},
		mover.Claimed{Holder: "one"},
		mover.PreflightPassed{Clusters: []string{"a"}},
		mover.PauseIntended{Roots: []pause.Root{{Ref: f.cluster, UID: items[0].UID}}},
		mover.Paused{},
		mover.Acknowledged{Objects: map[object.Ref]pause.Signal{f.cluster: pause.ByCondition, f.machine: pause.ByCondition}},
		mover.AllAcknowledged{},
		mover.PlanDrafted{First: true, Items: items},
		mover.Planned{},
		mover.Created{Objects: made},
		mover.AllCreated{},
		mover.Verified{},
	} {
		f.apply(e)
		if e == until {
			break
		}
	}
	return f
}

// apply adds an event to the move.
func (f *fakes) apply(e mover.Event) {
	f.state.Apply(e, f.now)
	f.events = append(f.events, e)
}

// step runs the next step, and returns the status after it.
func (f *fakes) step() (message, next string) {
	f.t.Helper()
	emit := func(o mover.Outcome) error {
		events, err := mover.Decide(f.state, o, f.now)
		for _, e := range events {
			f.apply(e)
		}
		return err
	}
	if err := emit(mover.Tick{}); err != nil {
		f.t.Fatal(err)
	}
	o, err := f.transfer.Perform(f.t.Context(), f.state, mover.Next(f.state), emit)
	if err == nil {
		err = emit(o)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return mover.Explain(f.state)
}

// run performs steps until the next step is until.
func (f *fakes) run(until mover.Step) {
	f.t.Helper()
	for range 20 {
		if mover.Next(f.state) == until {
			return
		}
		f.step()
	}
	f.t.Fatalf("the move does not get to %q: %s, %q", until, f.state.Phase, f.state.TransientFailure.Message)
}

func (f *fakes) checkStranded(message, next string, words ...string) {
	f.t.Helper()
	if !mover.Status(f.state).Stranded || next == "" {
		f.t.Fatalf("not stranded: %s: %q, next %q", f.state.Phase, message, next)
	}
	for _, w := range words {
		if !strings.Contains(message+" "+next, w) {
			f.t.Errorf("%q, next %q: does not say %q", message, next, w)
		}
	}
}

func (f *fakes) checkExists(api *fakeAPI, ref object.Ref) {
	f.t.Helper()
	if api.get(ref) == nil {
		f.t.Errorf("%s is gone", ref)
	}
}

func (f *fakes) checkPaused(api *fakeAPI, ref object.Ref, want bool) {
	f.t.Helper()
	u := api.get(ref)
	if u == nil {
		f.t.Fatalf("%s is gone", ref)
	}
	if got := object.Observe(u).Cluster.Paused; got != want {
		f.t.Errorf("%s: paused %t, want %t", ref, got, want)
	}
}

// TestRollbackKeepsTheOnlyCopy checks that a rollback removes no copies, and resumes nothing, if the source lacks an
// object: the log may have lost the record of its deletion.
func TestRollbackKeepsTheOnlyCopy(t *testing.T) {
	for name, empty := range map[string]func(*fakes){
		"deleted":  func(f *fakes) { f.src.drop(f.machine) },
		"replaced": func(f *fakes) { f.src.put(f.machine, obj{}) },
		"released": func(f *fakes) {
			f.src.merge(f.machine, obj{"metadata": obj{"annotations": obj{object.DeleteForMoveAnnotation: ""}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.AllCreated{})
			empty(f)
			f.state.Apply(mover.RollbackStarted{Reason: "the source changed"}, f.now)
			message, next := f.step()
			f.checkStranded(message, next, "Machine.cluster.x-k8s.io fleet/a-1", "only on the target", "newer log")
			f.checkExists(f.dst, f.machine)
			f.checkExists(f.dst, f.cluster)
			f.checkPaused(f.src, f.cluster, true)
		})
	}
}

// TestStrandedRollbackGoesOn checks that a stranded rollback continues once the target has no only copies.
func TestStrandedRollbackGoesOn(t *testing.T) {
	f := moved(t, mover.AllCreated{})
	f.src.drop(f.machine)
	f.state.Apply(mover.RollbackStarted{Reason: "the source changed"}, f.now)
	f.checkStranded(f.step())
	f.dst.drop(f.machine)
	f.run(mover.None)
	if f.state.Phase != mover.PhaseRolledBack || f.dst.get(f.cluster) != nil {
		t.Errorf("phase = %s, the copy of the Cluster exists: %t", f.state.Phase, f.dst.get(f.cluster) != nil)
	}
	f.checkPaused(f.src, f.cluster, false)
}

// TestRollbackWithoutAPlanKeepsAnEmptiedSourcePaused checks that the annotation of an emptied source keeps it paused if
// the log lost the plan.
func TestRollbackWithoutAPlanKeepsAnEmptiedSourcePaused(t *testing.T) {
	f := moved(t, mover.Verified{})
	ctx, die := context.WithCancel(t.Context())
	f.src.hook = func(r *http.Request) {
		if r.Method == http.MethodDelete {
			die()
		}
	}
	if _, err := f.transfer.Perform(ctx, f.state, mover.DeleteSource, func(mover.Outcome) error { return nil }); err == nil {
		t.Fatal("the process did not crash")
	}
	f.src.hook = nil
	older := moved(t, mover.Paused{})
	older.src, older.dst, older.transfer = f.src, f.dst, f.transfer
	older.state.Roots = f.state.Roots
	older.state.Apply(mover.AbortRequested{}, older.now)
	older.step()
	message, next := older.step()
	older.checkStranded(message, next, "Cluster.cluster.x-k8s.io fleet/a", "stays paused")
	older.checkPaused(f.src, f.cluster, true)
}

// TestNothingIsDeletedThatTheTargetDoesNotHold checks that nothing is deleted at the source if the target has lost its
// copies since the verification.
func TestNothingIsDeletedThatTheTargetDoesNotHold(t *testing.T) {
	for name, wipe := range map[string]func(*fakes){
		"gone":     func(f *fakes) { f.dst.drop(f.machine) },
		"replaced": func(f *fakes) { f.dst.put(f.cluster, obj{}) },
		"deleting": func(f *fakes) {
			f.dst.merge(f.machine, obj{"metadata": obj{"deletionTimestamp": "2026-01-01T00:00:00Z"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Verified{})
			wipe(f)
			message, next := f.step()
			f.checkStranded(message, next, "fleet/a", "on the target", "restore the target")
			f.checkExists(f.src, f.machine)
			f.checkExists(f.src, f.cluster)
			f.checkPaused(f.src, f.cluster, true)
		})
	}
}

// TestTheTargetIsAskedBeforeEachLevel checks that a deletion stops if the target loses its copies between two levels.
func TestTheTargetIsAskedBeforeEachLevel(t *testing.T) {
	f := moved(t, mover.Verified{})
	f.src.hook = func(r *http.Request) {
		if r.Method == http.MethodDelete {
			f.dst.drop(f.cluster)
		}
	}
	f.checkStranded(f.step())
	f.checkExists(f.src, f.cluster)
	if f.src.get(f.machine) != nil {
		t.Error("the first level was not deleted")
	}
}

// TestRecreatedAtTheSource checks that the target stays paused while a Cluster that a GitOps tool created again at the
// source is active.
func TestRecreatedAtTheSource(t *testing.T) {
	for name, settle := range map[string]func(*fakes){
		"paused": func(f *fakes) { f.src.merge(f.cluster, obj{"spec": obj{"paused": true}}) },
		"gone":   func(f *fakes) { f.src.drop(f.cluster) },
	} {
		for at, step := range map[string]mover.Step{"during deletion": mover.DeleteSource, "before resuming": mover.RestorePauses} {
			t.Run(name+" "+at, func(t *testing.T) {
				f := moved(t, mover.Verified{})
				f.run(step)
				f.src.put(f.cluster, obj{"spec": obj{}})
				message, next := f.step()
				f.checkStranded(message, next, "Cluster.cluster.x-k8s.io fleet/a", "stays paused", "GitOps", `{"spec":{"paused":true}}`)
				f.checkPaused(f.dst, f.cluster, true)
				f.checkPaused(f.src, f.cluster, false)
				settle(f)
				f.run(mover.AwaitResume)
				f.checkPaused(f.dst, f.cluster, false)
			})
		}
	}
}

// TestACopyOfAnotherMoveIsWaitedFor checks that a shared class that another move created on the target is not adopted
// until that move has ended: its rollback would remove the class.
func TestACopyOfAnotherMoveIsWaitedFor(t *testing.T) {
	f := moved(t, mover.Verified{})
	class := capi("ClusterClass", "k")
	f.dst.put(class, obj{"metadata": obj{"annotations": obj{object.MoveAnnotation: "fleet/other/89abcdef"}}, "spec": obj{"x": "1"}})
	item := mover.Item{Ref: class, Version: "v1beta2", UID: f.src.put(class, obj{"spec": obj{"x": "1"}}), KeepReason: "Cluster fleet/b uses it"}
	state := &mover.State{Phase: mover.PhaseCreating, Plan: []mover.Item{item}}
	var got mover.Outcome
	create := func() mover.Outcome {
		o, err := f.transfer.Perform(t.Context(), state, mover.CreateCopies, func(o mover.Outcome) error { got = o; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	failed, _ := create().(mover.StepFailed)
	if failed.Final || !strings.Contains(failed.Message, "fleet/other/89abcdef") || failed.Next == "" {
		t.Errorf("outcome = %+v, want a wait with the other move", failed)
	}
	f.dst.merge(class, obj{"metadata": obj{"annotations": nil}})
	if _, done := create().(mover.AllCreated); !done {
		t.Error("the class is still waited for after the other move ended")
	}
	if some, _ := got.(mover.Created); len(some.Adopted) != 1 {
		t.Errorf("outcome = %+v, want the class adopted", got)
	}
}

// TestRestoreTakesOffNoOthersMark checks that a rollback keeps the annotation of another holder that it set between the
// read and the write of the restore.
func TestRestoreTakesOffNoOthersMark(t *testing.T) {
	f := moved(t, mover.AllCreated{})
	f.src.hook = func(r *http.Request) {
		if r.Method == http.MethodPatch {
			f.src.hook = nil
			f.src.merge(f.cluster, obj{"metadata": obj{"annotations": obj{object.MoveAnnotation: "fleet/other/89abcdef"}}})
		}
	}
	f.state.Apply(mover.RollbackStarted{Reason: "requested by an operator"}, f.now)
	f.run(mover.None)
	if mark := f.src.get(f.cluster).GetAnnotations()[object.MoveAnnotation]; mark != "fleet/other/89abcdef" {
		t.Errorf("annotation of the Cluster = %q, want that of the other move", mark)
	}
	f.checkPaused(f.src, f.cluster, true)
}

// recorded returns a move that has recorded that its Cluster is not paused, and has not paused it yet.
func recorded(t *testing.T) *fakes {
	t.Helper()
	f := moved(t, mover.Claimed{Holder: "one"})
	f.src.merge(f.cluster, obj{"metadata": obj{"annotations": obj{object.MoveAnnotation: nil, object.LogAnnotation: nil}}, "spec": obj{"paused": nil}})
	f.apply(mover.PreflightPassed{Clusters: []string{"a"}})
	f.apply(mover.PauseIntended{Roots: []pause.Root{{Ref: f.cluster, UID: f.src.get(f.cluster).GetUID()}}})
	return f
}

// TestAPauseThatComesBeforeOursIsKept checks that a user's pause is kept that was set after the state was recorded and
// before the move pauses the Cluster: restoring the recorded state would remove it.
func TestAPauseThatComesBeforeOursIsKept(t *testing.T) {
	f := recorded(t)
	f.src.merge(f.cluster, obj{"spec": obj{"paused": true}})
	f.run(mover.None)
	if f.state.Phase != mover.PhaseRolledBack || !strings.Contains(f.state.RollbackCause, "another client paused or resumed it") {
		t.Errorf("phase = %s, rollback cause %s", f.state.Phase, f.state.RollbackCause)
	}
	if mark := f.src.get(f.cluster).GetAnnotations()[object.MoveAnnotation]; mark != "" {
		t.Errorf("annotation of the Cluster = %q, want none", mark)
	}
	f.checkPaused(f.src, f.cluster, true)
}

// TestAMarkThatComesBeforeOursIsKept checks that only one of two moves holds a Cluster if another move annotates it
// between the read and the write.
func TestAMarkThatComesBeforeOursIsKept(t *testing.T) {
	f := recorded(t)
	f.src.hook = func(r *http.Request) {
		if r.Method == http.MethodPatch {
			f.src.hook = nil
			f.src.merge(f.cluster, obj{"metadata": obj{"annotations": obj{object.MoveAnnotation: "fleet/other/89abcdef"}}})
		}
	}
	f.step()
	if mark := f.src.get(f.cluster).GetAnnotations()[object.MoveAnnotation]; mark != "fleet/other/89abcdef" {
		t.Errorf("annotation of the Cluster = %q, want that of the other move", mark)
	}
}

// TestAPauseLooksAgain checks that a Cluster is read again and paused if a controller writes to it between the read and
// the write.
func TestAPauseLooksAgain(t *testing.T) {
	f := recorded(t)
	f.src.hook = func(r *http.Request) {
		if r.Method == http.MethodPatch {
			f.src.hook = nil
			f.src.merge(f.cluster, obj{"metadata": obj{"annotations": obj{"controller": "was here"}}})
		}
	}
	f.step()
	if mark := f.src.get(f.cluster).GetAnnotations()[object.MoveAnnotation]; mark == "" {
		t.Error("the Cluster has no annotation")
	}
	f.checkPaused(f.src, f.cluster, true)
}

// TestAcknowledgementsAreJudgedAgain checks that a controller that has resumed since its acknowledgement is found when
// the plan is made, and at the verification.
func TestAcknowledgementsAreJudgedAgain(t *testing.T) {
	paused := func(status string) obj {
		return obj{
			"status": obj{"conditions": []any{obj{"type": "Paused", "status": status}}},
		}
	}
	for _, until := range []mover.Event{mover.AllAcknowledged{}, mover.AllCreated{}} {
		t.Run(fmt.Sprintf("%T", until), func(t *testing.T) {
			f := moved(t, until)
			f.src.merge(f.cluster, paused("True"))
			f.src.merge(f.machine, paused("False"))
			if message, _ := f.step(); !strings.Contains(message, "condition Paused is False") {
				t.Errorf("phase = %s, message %q", f.state.Phase, message)
			}
		})
	}
}
