package transfer

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

func TestDriftNamesWhatChangedCameOrWent(t *testing.T) {
	ref := func(kind, name string) object.Ref { return object.Ref{Kind: kind, Namespace: "n", Name: name} }
	plan := []mover.Item{
		{Ref: ref("Machine", "same"), UID: "1", Hash: "h", ResourceVersion: "1"},
		{Ref: ref("Machine", "written"), UID: "2", Hash: "h"},
		{Ref: ref("Machine", "replaced"), UID: "3", Hash: "h"},
		{Ref: ref("Machine", "gone"), UID: "4", Hash: "h"},
		{Ref: ref("Secret", "rotated"), UID: "5", ResourceVersion: "1"},
		{Ref: ref("Template", "kept"), UID: "6", Hash: "h", KeepReason: "it stays"},
	}
	now := []mover.Item{
		{Ref: ref("Machine", "same"), UID: "1", Hash: "h", ResourceVersion: "2"}, // its status changed
		{Ref: ref("Machine", "written"), UID: "2", Hash: "other"},
		{Ref: ref("Machine", "replaced"), UID: "33", Hash: "h"},
		{Ref: ref("Machine", "new"), UID: "7", Hash: "h"},
		{Ref: ref("Secret", "rotated"), UID: "5", ResourceVersion: "2"},
		{Ref: ref("Template", "kept"), UID: "6", Hash: "other", KeepReason: "it stays"},
	}
	got := make(map[string]string)
	for _, w := range drift(plan, now) {
		got[w.Ref.Name] = w.Reason
	}
	want := map[string]string{
		"written":  "it changed at the source after the plan was recorded",
		"replaced": "it was deleted at the source and recreated with the same name",
		"new":      "it was created at the source after the plan was recorded",
		"gone":     "it was deleted at the source after the plan was recorded",
		"rotated":  "it changed at the source after the plan was recorded",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTheSourceIsJudgedAgainWhenThePlanIsMade checks that the preflight's checks are repeated when the plan is made: a
// Machine that is being deleted by then would be lost, and an unfinished one would be created twice.
func TestTheSourceIsJudgedAgainWhenThePlanIsMade(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fakes)
		want   string
	}{
		"as it was": {func(*fakes) {}, ""},
		"a machine that is being deleted": {
			func(f *fakes) {
				f.src.merge(f.machine, obj{"metadata": obj{"deletionTimestamp": "2026-05-01T12:00:00Z"}})
			},
			"Machine.cluster.x-k8s.io fleet/a-1: it is being deleted",
		},
		"a machine without a node": {
			func(f *fakes) { f.src.merge(f.machine, obj{"status": obj{"nodeRef": nil}}) },
			"Machine.cluster.x-k8s.io fleet/a-1: it has no Node yet",
		},
		"a reference to what is not there": {
			func(f *fakes) { f.src.merge(f.machine, obj{"spec": obj{"bootstrap": obj{"dataSecretName": "boot"}}}) },
			"Machine.cluster.x-k8s.io fleet/a-1: spec.bootstrap.dataSecretName: it refers to Secret fleet/boot, which does not exist",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.AllAcknowledged{})
			for _, ref := range []object.Ref{f.cluster, f.machine} {
				f.src.merge(ref, obj{"status": obj{"conditions": []any{obj{"type": "Paused", "status": "True"}}}})
			}
			c.change(f)
			o, err := f.transfer.Perform(t.Context(), f.state, mover.DraftPlan, nil)
			if err != nil {
				t.Fatal(err)
			}
			failed, ok := o.(mover.StepFailed)
			if ok != (c.want != "") || !strings.Contains(failed.Message, c.want) || ok && (!failed.Final || !strings.Contains(failed.Next, "create another Move")) {
				t.Errorf("outcome = %+v, want %q", o, c.want)
			}
		})
	}
}

// TestThePlanIsMadeFromALookAtRest checks that the plan is made from the read in which all objects
// had acknowledged, once, and only if it is recent.
func TestThePlanIsMadeFromALookAtRest(t *testing.T) {
	for name, c := range map[string]struct {
		age   time.Duration
		lists []int // of the first plan and of another one
	}{
		"a moment ago": {-time.Hour, []int{0, 1}}, // in the future, because a slow machine needs time between here and the plan
		"long ago":     {listInterval / pauseShare, []int{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.AllAcknowledged{})
			f.controllers()
			for range 3 {
				if _, err := f.transfer.Perform(t.Context(), f.state, mover.AwaitAcks, nil); err != nil {
					t.Fatal(err)
				}
			}
			if f.transfer.pausedSnapshot == nil {
				t.Fatal("the source is not at rest")
			}
			f.transfer.pausedSnapshot.at = time.Now().Add(-c.age)
			for i, want := range c.lists {
				made := requests(f.src)
				o, err := f.transfer.Perform(t.Context(), f.state, mover.DraftPlan, nil)
				if drafted, ok := o.(mover.Drafted); err != nil || !ok || len(drafted.Items) != 2 || drafted.Items[1].Hash == "" {
					t.Fatalf("outcome = %+v, error %v", o, err)
				}
				lists := 0
				for _, r := range made() {
					if r == "GET machines" {
						lists++
					}
				}
				if lists != want {
					t.Errorf("plan %d: machines were listed %d times, want %d", i, lists, want)
				}
			}
		})
	}
}

// TestThePlanHasHashesWhereEveryKindHasObjects checks that the plan is not made from a read without
// hashes. If every kind has objects, such a read can also show that all objects have acknowledged.
func TestThePlanHasHashesWhereEveryKindHasObjects(t *testing.T) {
	f := moved(t, mover.AllAcknowledged{})
	for _, kind := range []string{"Secret", "ConfigMap"} {
		f.src.put(object.Ref{Kind: kind, Namespace: "fleet", Name: "other"}, nil)
	}
	for _, kind := range []string{"ClusterClass", "MachineSet"} {
		f.src.put(capi(kind, "other"), nil)
	}
	f.src.put(object.Ref{Group: "infrastructure.cluster.x-k8s.io", Kind: "DevMachine", Namespace: "fleet", Name: "other"}, nil)
	f.controllers()
	addMany(f, 1) // a machine that its controller has not seen yet
	await := func() mover.AcksRead {
		o, err := f.transfer.Perform(t.Context(), f.state, mover.AwaitAcks, nil)
		if err != nil {
			t.Fatal(err)
		}
		seen, _ := o.(mover.AcksRead)
		return seen
	}
	if seen := await(); len(seen.Pending) == 0 {
		t.Fatalf("nothing is pending: %+v", seen)
	}
	f.controllers()
	if seen := await(); !seen.Stable {
		t.Fatalf("the source is not at rest: %+v", seen)
	}
	o, err := f.transfer.Perform(t.Context(), f.state, mover.DraftPlan, nil)
	drafted, ok := o.(mover.Drafted)
	if err != nil || !ok {
		t.Fatalf("outcome = %+v, error %v", o, err)
	}
	for _, item := range drafted.Items {
		if item.Hash == "" && !isSecret(item.Ref) {
			t.Errorf("%s is planned without a hash", item.Ref)
		}
	}
}

// TestADeletionBeforeVerifiedIsADifference checks that an object that is deleted while the copies are created is found
// by the verification.
func TestADeletionBeforeVerifiedIsADifference(t *testing.T) {
	f := moved(t, mover.AllCreated{})
	for _, ref := range []object.Ref{f.cluster, f.machine} {
		f.src.merge(ref, obj{"status": obj{"conditions": []any{obj{"type": "Paused", "status": "True"}}}})
	}
	f.src.merge(f.machine, obj{"metadata": obj{"deletionTimestamp": "2026-05-01T12:00:00Z"}})
	o, err := f.transfer.Perform(t.Context(), f.state, mover.VerifyCopies, nil)
	if err != nil {
		t.Fatal(err)
	}
	done, _ := o.(mover.VerifyDone)
	if !slices.Contains(done.Differences, mover.ObjectReason{Ref: f.machine, Reason: "it is being deleted at the source"}) {
		t.Errorf("differences = %+v, want the deletion", done.Differences)
	}
}

// TestTheVerificationReadsBothSidesAtOnce checks that the verification reads the copies and the source concurrently.
func TestTheVerificationReadsBothSidesAtOnce(t *testing.T) {
	f := moved(t, mover.AllCreated{})
	f.controllers()
	f.hashPlan()
	f.transfer.acknowledged = map[object.Ref]bool{f.cluster: true, f.machine: true} // so that the target is only read for the comparison
	if failed, err := f.transfer.Reach(t.Context(), f.state, mover.VerifyCopies); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	read := make(chan struct{})
	compared := sync.OnceFunc(func() { close(read) })
	f.dst.hook = func(*http.Request) { compared() }
	f.src.hook = func(*http.Request) {
		select {
		case <-read:
		case <-time.After(time.Minute):
			t.Error("the copies were only read after the source")
			compared()
		}
	}
	o, err := f.transfer.Perform(t.Context(), f.state, mover.VerifyCopies, nil)
	if done, ok := o.(mover.VerifyDone); err != nil || !ok || len(done.Differences) > 0 {
		t.Errorf("outcome = %+v, error %v", o, err)
	}
}
