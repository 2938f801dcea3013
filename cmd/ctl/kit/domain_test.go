package kit

import (
	"strings"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
	"scute.dev/pause/request"
	"scute.dev/view"
)

func machine(name string) object.Ref {
	return object.Ref{Group: object.CoreGroup, Kind: "Machine", Namespace: "fleet", Name: name}
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		event mover.Event
		want  string
	}{
		{
			mover.Requested{Spec: mover.Spec{Namespace: "fleet", Clusters: []string{"a", "b"}, Target: mover.Target{SecretName: "t"}, DryRun: true}},
			"move requested: clusters a, b of namespace fleet, target in Secret t, dry run",
		},
		{mover.Claimed{Holder: "x"}, "claimed: by x"},
		{mover.PreflightPassed{Clusters: []string{"a"}}, "preflight passed: 1 cluster: a"},
		{mover.Refused{Findings: []mover.Finding{{Field: "f", Message: "m"}, {}}}, "refused: 2 findings: f: m, and 1 more"},
		{mover.PauseIntended{Roots: []pause.Root{{Ref: machine("a")}, {Ref: machine("b"), Found: true}}}, "pause intended: of 2 objects: Machine a, Machine b; 1 already paused"},
		{mover.Paused{}, "paused: every root is paused"},
		{
			mover.Acknowledged{Objects: map[object.Ref]pause.Signal{machine("a"): pause.ByCondition, machine("b"): pause.Assumed, machine("c"): pause.AlreadyPaused}},
			"pause acknowledged: 3 objects: Machine a, Machine b, …; 1 already held, 1 assumed, 1 by condition",
		},
		{mover.Waiting{For: []mover.ObjectReason{{Ref: machine("a"), Reason: "Paused is False"}}, Total: 3}, "waiting: for Machine a: Paused is False; and 2 more"},
		{mover.Created{Adopted: []object.Ref{machine("a")}}, "objects created: 1 existed already"},
		{mover.Deleted{Objects: []object.Ref{machine("a")}}, "objects deleted: at the source: Machine a"},
		{mover.Failed{Message: "m", Next: "n"}, "failed: m; n"},
		{mover.AbortRequested{Reason: "r"}, "abort requested: r"},
		{mover.Succeeded{}, "succeeded: "},
	} {
		ev, err := mover.NewCatalog().Encode(c.event)
		if err != nil {
			t.Fatal(err)
		}
		f := lineOf(eventlog.KindMove, ev)
		if got := f.Name + ": " + f.Text(); got != c.want {
			t.Errorf("%T:\n got %s\nwant %s", c.event, got, c.want)
		}
	}
}

// TestWordsOfAPause checks the texts of the events of a Pause, which equal those of a Move for the same operations.
func TestWordsOfAPause(t *testing.T) {
	asleep := []pause.PendingObject{{Ref: machine("a"), Reason: "condition Paused is still True"}}
	for _, c := range []struct {
		event request.Event
		want  string
	}{
		{request.Requested{Spec: request.Spec{Namespace: "fleet", Clusters: []string{"a"}, Selector: "region=north", BySelector: true, Reason: "r"}}, "pause requested: clusters a and clusters with labels region=north of namespace fleet; r"},
		{request.Requested{Spec: request.Spec{Namespace: "fleet", BySelector: true}}, "pause requested: all clusters of namespace fleet"},
		{request.Claimed{Holder: "x"}, "claimed: by x"},
		{request.Intended{Roots: []pause.Root{{Ref: machine("a")}, {Ref: machine("b"), Found: true}}}, "pause intended: of 2 objects: Machine a, Machine b; 1 already paused"},
		{request.Paused{Roots: []object.Ref{machine("a")}}, "paused: Machine a"},
		{
			request.Acknowledged{Objects: map[object.Ref]request.Ack{machine("a"): {How: pause.ByCondition}, machine("b"): {How: pause.Settled}, machine("c"): {How: pause.ByCondition}}},
			"pause acknowledged: 3 objects: Machine a, Machine b, …; 2 by condition, 1 settled",
		},
		{request.Withdrawn{Objects: map[object.Ref]string{machine("b"): "it is gone", machine("a"): "condition Paused is False"}}, "acknowledgement withdrawn: 2 objects: Machine a, Machine b; condition Paused is False; it is gone"},
		{request.Waiting{Pending: request.Pending{Objects: asleep, Total: 2}}, "waiting: for Machine a: condition Paused is still True; and 1 more"},
		{request.AllAcknowledged{Objects: 3}, "all acknowledged: by 3 objects"},
		{request.TimedOut{Objects: asleep, Total: 1}, "timed out: for Machine a: condition Paused is still True"},
		{request.Dropped{Roots: []object.Ref{machine("a")}}, "clusters deleted: Machine a"},
		{request.TransientFailure{Message: "m", Next: "n"}, "transient failure: m; n"},
		{request.TransientFailure{}, "transient failure resolved: "},
		{request.ReleaseRequested{Reason: "r"}, "release requested: r"},
		{request.Restored{}, "pauses restored: as recorded"},
		{request.Released{}, "released: every object has resumed, or is paused for another reason"},
		{request.Released{StillPaused: asleep, Total: 1}, "released: no longer waiting for Machine a: condition Paused is still True"},
	} {
		ev, err := request.NewCatalog().Encode(c.event)
		if err != nil {
			t.Fatal(err)
		}
		f := lineOf(eventlog.KindPause, ev)
		if got := f.Name + ": " + f.Text(); got != c.want {
			t.Errorf("%T:\n got %s\nwant %s", c.event, got, c.want)
		}
	}
}

// TestUnknownTypesAreToldWithoutTheirData checks that an event of an unknown type is shown by its type, without its
// data, which may be confidential.
func TestUnknownTypesAreToldWithoutTheirData(t *testing.T) {
	f := lineOf(eventlog.KindRun, eventlog.Event{Type: "dev.scute.run.task-began.v3", Data: []byte(`{"password":"hunter2"}`)})
	if f.Name != "task began" || !strings.Contains(f.Text(), "22 bytes") || strings.Contains(f.Text(), "hunter2") {
		t.Errorf("got %s: %s", f.Name, f.Text())
	}
}

func TestMerge(t *testing.T) {
	a := view.Line{Name: "objects created", Objects: []object.Ref{machine("a")}, Detail: "1 existed already"}
	b := view.Line{Name: "objects created", Objects: []object.Ref{machine("b")}}
	merged, ok := a.Merge(b)
	if !ok || merged.Text() != "2 objects: Machine a, Machine b" {
		t.Errorf("Merge = %v: %s", ok, merged.Text())
	}
	if _, ok := a.Merge(view.Line{Name: "objects deleted", Objects: b.Objects}); ok {
		t.Error("facts of different types were merged")
	}
	if _, ok := (view.Line{Name: "paused"}).Merge(view.Line{Name: "paused"}); ok {
		t.Error("facts without objects were merged")
	}
}
