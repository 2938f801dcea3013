package transfer

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/archive"
)

// toRestore prepares a restore of Cluster a to the target, which has none of its objects.
func toRestore(t *testing.T) (*fakes, *archive.Archive, func() *Restore) {
	t.Helper()
	f, a, err := backUp(t, func(*fakes, int) {})
	if err != nil {
		t.Fatal(err)
	}
	f.dst.drop(f.cluster)
	f.dst.drop(f.machine)
	return f, a, func() *Restore {
		return &Restore{Target: f.dst.cluster(t, "target"), Archive: a, SourceGone: true, AckTimeout: time.Minute}
	}
}

func refusedFor(err error, says string) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && slices.ContainsFunc(refused.Findings, func(one mover.Finding) bool { return strings.Contains(one.Message, says) })
}

// TestARestoreIsTakenOver checks that of two processes that run the same restore, the first one stops at its next write
// to the record.
func TestARestoreIsTakenOver(t *testing.T) {
	f, _, process := toRestore(t)
	first, second := process(), process()
	for _, r := range []*Restore{first, second} {
		if _, err := r.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f.dst.hook = func(r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/machines") {
			f.dst.hook = nil
			if err := second.Run(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	if err := first.Run(t.Context()); err == nil {
		t.Errorf("Run of the first process = %v, want an error", err)
	}
	f.checkExists(f.dst, f.cluster)
	f.checkExists(f.dst, f.machine)
	f.checkPaused(f.dst, f.cluster, false)
	if marks := f.dst.get(f.machine).GetAnnotations(); len(marks) > 0 {
		t.Errorf("annotations of the Machine remain: %v", marks)
	}
}

// TestARestoreThatHasEnded checks that a finished restore creates no objects again, and is refused if one of its
// Clusters is gone.
func TestARestoreThatHasEnded(t *testing.T) {
	f, _, process := toRestore(t)
	for range 2 {
		r := process()
		if _, err := r.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.dst.drop(f.machine) // as its owner does when it is scaled down
	}
	if f.dst.get(f.machine) != nil {
		t.Error("a Machine that was deleted after the restore was created again")
	}
	f.dst.drop(f.cluster)
	if _, err := process().Prepare(t.Context()); !refusedFor(err, "no longer exists") {
		t.Errorf("Prepare after the Cluster was deleted = %v, want a refusal", err)
	}
}

// TestARestoreAsksForTheSource checks that a restore needs a source whose Clusters are paused, or a statement of the
// user that the source is gone.
func TestARestoreAsksForTheSource(t *testing.T) {
	f, a, process := toRestore(t)
	r := process()
	r.SourceGone = false
	if _, err := r.Prepare(t.Context()); !refusedFor(err, "cannot determine") {
		t.Errorf("Prepare without a source = %v, want a refusal", err)
	}
	r = process()
	r.SourceGone, r.Source = false, f.src.cluster(t, "source")
	f.src.merge(f.cluster, obj{"spec": obj{"paused": nil}})
	if _, err := r.Prepare(t.Context()); !refusedFor(err, "still runs there") {
		t.Errorf("Prepare with an active source = %v, want a refusal", err)
	}
	there := f.src.get(f.cluster).Object
	f.src.drop(f.cluster)
	if _, err := r.Prepare(t.Context()); !refusedFor(err, "moved to another management cluster") {
		t.Errorf("Prepare with a source without the Cluster = %v, want a refusal", err)
	}
	same := process()
	same.SourceGone, same.Target, same.Source = false, f.src.cluster(t, "target"), f.src.cluster(t, "source")
	if _, err := same.Prepare(t.Context()); !refusedFor(err, "it is the target") {
		t.Errorf("Prepare with a source that is the target and lacks the Cluster = %v, want a refusal", err)
	}
	f.src.put(f.cluster, there)
	f.src.merge(f.cluster, obj{"spec": obj{"paused": true}})
	if _, err := r.Prepare(t.Context()); err != nil {
		t.Errorf("Prepare with a paused source = %v", err)
	}
	// The source is resumed while the objects are created: they stay paused.
	f.dst.hook = func(q *http.Request) {
		if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/machines") {
			f.dst.hook = nil
			f.src.merge(f.cluster, obj{"spec": obj{"paused": nil}})
		}
	}
	if err := r.Run(t.Context()); !refusedFor(err, "still runs there") {
		t.Errorf("Run after the source was resumed = %v, want a refusal", err)
	}
	f.checkPaused(f.dst, f.cluster, true)
	if a.Index.Source.Cluster == "" {
		t.Error("the backup does not record its source")
	}
}

// TestARestoreOntoATakenName checks that existing objects of the target are never overwritten.
func TestARestoreOntoATakenName(t *testing.T) {
	f, _, process := toRestore(t)
	f.dst.put(f.cluster, obj{"spec": obj{"paused": true}})
	uid := f.dst.get(f.cluster).GetUID()
	if _, err := process().Prepare(t.Context()); !refusedFor(err, "an object with this name already exists") {
		t.Errorf("Prepare = %v, want a refusal", err)
	}
	if f.dst.get(f.cluster).GetUID() != uid || f.dst.get(f.machine) != nil {
		t.Error("the target was changed")
	}
}

// TestARestoreOntoTheClusterThatWasBackedUp checks that a restore to the management cluster that still has the Cluster
// is refused with a single finding.
func TestARestoreOntoTheClusterThatWasBackedUp(t *testing.T) {
	f, a, _ := toRestore(t)
	r := &Restore{Target: f.src.cluster(t, "target"), Archive: a, SourceGone: true}
	_, err := r.Prepare(t.Context())
	var refused *RefusedError
	if !refusedFor(err, "is the management cluster that was backed up") || !errors.As(err, &refused) || len(refused.Findings) != 1 {
		t.Errorf("Prepare = %v, want a single finding", err)
	}
}

// TestARestoreOntoWhatIsHeld checks that an object that another restore holds on the target is not adopted, even if it
// is equal.
func TestARestoreOntoWhatIsHeld(t *testing.T) {
	f, _, process := toRestore(t)
	f.dst.put(f.cluster, obj{"metadata": obj{"annotations": obj{object.MoveAnnotation: "restore-b2"}}, "spec": obj{"paused": true}})
	if _, err := process().Prepare(t.Context()); !refusedFor(err, "held by the restore of backup b2") {
		t.Errorf("Prepare = %v, want a refusal", err)
	}
}

// TestARestoreThatMayNotKeepItsRecord checks that a restore does not start without the permission to write its record.
func TestARestoreThatMayNotKeepItsRecord(t *testing.T) {
	f, _, process := toRestore(t)
	f.dst.deniedPlural = "configmaps"
	if _, err := process().Prepare(t.Context()); !refusedFor(err, "may not create ConfigMaps") {
		t.Errorf("Prepare = %v, want a refusal", err)
	}
}

func TestARestoreCarriesStatus(t *testing.T) {
	f, _, process := toRestore(t)
	r := process()
	r.CarryStatus = []string{"Gadget.example.org"}
	if _, err := r.Prepare(t.Context()); !refusedFor(err, "serves no kind") {
		t.Errorf("Prepare with an unknown kind = %v, want a refusal", err)
	}
	r = process()
	r.CarryStatus = []string{machineNamed("").GroupKind()}
	if _, err := r.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if node, _, _ := unstructured.NestedString(f.dst.get(f.machine).Object, "status", "nodeRef", "name"); node != "n" {
		t.Errorf("status of the Machine = %v", f.dst.get(f.machine).Object["status"])
	}
	if f.dst.get(f.cluster).Object["status"] != nil {
		t.Error("the status of the Cluster was written although its kind is not in CarryStatus")
	}
}

// TestARestoreWaitsForTheTarget checks that objects are resumed only after the controllers of the target have
// acknowledged each copy. A condition in a restored status does not count.
func TestARestoreWaitsForTheTarget(t *testing.T) {
	paused := obj{"status": obj{"conditions": []any{obj{"type": "Paused", "status": "True"}}}}
	f, a, err := backUpAfter(t, func(f *fakes) {
		f.src.merge(f.cluster, paused)
		f.src.merge(f.machine, paused)
	}, func(*fakes, int) {})
	if err != nil {
		t.Fatal(err)
	}
	f.dst.drop(f.cluster)
	f.dst.drop(f.machine)
	process := func(patience time.Duration) *Restore {
		r := &Restore{
			Target: f.dst.cluster(t, "target"), Archive: a, SourceGone: true, AckTimeout: patience,
			CarryStatus: []string{f.machine.GroupKind()},
		}
		if _, err := r.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		return r
	}
	err = process(50 * time.Millisecond).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "everything stays paused") || !strings.Contains(err.Error(), f.machine.String()) {
		t.Errorf("Run without controllers = %v, want a timeout with the Machine", err)
	}
	f.checkPaused(f.dst, f.cluster, true)

	r := process(time.Minute)
	r.Progress = func(s Step) {
		if s.Phase == restoreAcknowledging { // the controllers acknowledge now
			f.dst.merge(f.cluster, paused)
			f.dst.merge(f.machine, paused)
		}
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.checkPaused(f.dst, f.cluster, false)
}

// TestWhatWasPausedBeforeABackup checks that a restore keeps a user's pause, and drops a pause of a Pause or of a run.
func TestWhatWasPausedBeforeABackup(t *testing.T) {
	for name, c := range map[string]struct {
		annotations obj
		paused      bool
	}{
		"by a user":               {nil, true},
		"by a Pause":              {obj{object.PausePrefix + "p": "fleet/p", object.PausedBeforeAnnotation: "false"}, false},
		"by a user, then a Pause": {obj{object.PausePrefix + "p": "fleet/p", object.PausedBeforeAnnotation: "true"}, true},
		"by a task of a run":      {obj{object.PauseAnnotation: "fleet/r", object.PausedBeforeAnnotation: "false"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, a, err := backUpAfter(t, func(f *fakes) {
				f.src.merge(f.cluster, obj{"metadata": obj{"annotations": c.annotations}, "spec": obj{"paused": true}})
			}, func(*fakes, int) {})
			if err != nil {
				t.Fatal(err)
			}
			f.dst.drop(f.cluster)
			f.dst.drop(f.machine)
			r := &Restore{Target: f.dst.cluster(t, "target"), Archive: a, SourceGone: true, AckTimeout: time.Minute}
			if _, err := r.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.dst.hook = func(q *http.Request) { // the last object is created
				if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/machines") && q.URL.RawQuery == "" {
					f.checkPaused(f.dst, f.cluster, true)
				}
			}
			if err := r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.checkPaused(f.dst, f.cluster, c.paused)
			if left := f.dst.get(f.cluster).GetAnnotations(); len(left) > 0 {
				t.Errorf("annotations of the Cluster remain: %v", left)
			}
		})
	}
}

// TestASharedClassThatAPauseHeld checks that a restore does not pause a shared ClusterClass, which stays at the source
// of a move. Its pause is as it was before a Pause held it.
func TestASharedClassThatAPauseHeld(t *testing.T) {
	class := capi("ClusterClass", "c")
	dir := t.TempDir()
	w, err := archive.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: obj{
		"apiVersion": object.CoreGroup + "/v1beta2", "kind": "ClusterClass",
		"metadata": obj{"namespace": "fleet", "name": "c", "uid": "u", "resourceVersion": "1", "annotations": obj{object.PausedAnnotation: ""}},
	}}
	if err := w.Put(u); err != nil {
		t.Fatal(err)
	}
	err = w.Finish(&archive.Index{
		Version: archive.Version, ID: "b", Namespace: "fleet", Clusters: []string{"a"},
		Objects: []archive.Entry{{Item: mover.Item{Ref: class, Version: "v1beta2", UID: "u", ResourceVersion: "1"}, File: w.File(class)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := archive.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for held, want := range map[bool]bool{true: true, false: false} {
		got, err := readPaused(a, mover.Item{Ref: class, PausedByUser: held, KeepReason: "it is shared"})
		if _, is := got.GetAnnotations()[object.PausedAnnotation]; err != nil || is != want {
			t.Errorf("paused by a user %v: paused %v, error %v", held, is, err)
		}
	}
}

// TestARestoreTellsOfOtherNamespaces checks that a warning lists objects that a restore would create in other
// namespaces, because the author of the backup may lack permissions there.
func TestARestoreTellsOfOtherNamespaces(t *testing.T) {
	for _, namespace := range []string{"fleet", "classes"} {
		f, a, err := backUpAfter(t, func(f *fakes) {
			f.src.put(object.Ref{Group: object.CoreGroup, Kind: "ClusterClass", Namespace: namespace, Name: "c"}, nil)
			f.src.merge(f.cluster, obj{"spec": obj{"topology": obj{"classRef": obj{"name": "c", "namespace": namespace}}}})
		}, func(*fakes, int) {})
		if err != nil {
			t.Fatal(err)
		}
		f.dst.drop(f.cluster)
		f.dst.drop(f.machine)
		f.dst.put(object.Ref{Kind: "Namespace", Name: "classes"}, nil)
		warnings, err := (&Restore{Target: f.dst.cluster(t, "target"), Archive: a, SourceGone: true}).Prepare(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		told := slices.ContainsFunc(warnings, func(one mover.Finding) bool {
			return one.Field == "target: namespace classes" && strings.HasSuffix(one.Message, ": ClusterClass c")
		})
		if told != (namespace != "fleet") {
			t.Errorf("namespace %s: warnings %+v", namespace, warnings)
		}
	}
}
