package transfer

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/archive"
)

// backUp backs up Cluster a, which is not paused. It calls between before each list of Machines but the first, with
// its number.
func backUp(t *testing.T, between func(f *fakes, n int)) (*fakes, *archive.Archive, error) {
	t.Helper()
	return backUpAfter(t, func(*fakes) {}, between)
}

// backUpAfter is backUp with a setup function.
func backUpAfter(t *testing.T, before func(f *fakes), between func(f *fakes, n int)) (*fakes, *archive.Archive, error) {
	t.Helper()
	f := moved(t, mover.Claimed{})
	f.src.merge(f.cluster, obj{"metadata": obj{"annotations": nil}, "spec": obj{"paused": nil}})
	before(f)
	lists := 0
	f.src.hook = func(r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/machines") {
			if lists++; lists > 1 {
				between(f, lists-1)
			}
		}
	}
	dir := filepath.Join(t.TempDir(), "backup")
	w, err := archive.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &Backup{Source: f.src.cluster(t, "source"), Selection: mover.Selection{Namespace: "fleet", Clusters: []string{"a"}}, Writer: w}
	index, _, err := b.Run(t.Context())
	f.src.hook = nil
	if err != nil {
		return f, nil, err
	}
	index.ID = "b1"
	if err := w.Finish(index); err != nil {
		t.Fatal(err)
	}
	a, err := archive.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f, a, nil
}

func machineNamed(name string) object.Ref {
	return object.Ref{Group: object.CoreGroup, Kind: "Machine", Namespace: "fleet", Name: name}
}

// addMachine creates a Machine like the one of the fakes.
func (f *fakes) addMachine(name string) {
	u := f.src.get(f.machine)
	f.src.put(machineNamed(name), obj{"metadata": u.Object["metadata"], "spec": u.Object["spec"], "status": u.Object["status"]})
}

// TestABackupIsOfOneMoment checks that a backup has objects that change, appear or disappear while it reads in their
// state at one moment.
func TestABackupIsOfOneMoment(t *testing.T) {
	change := func(f *fakes, n int) {
		f.src.merge(f.machine, obj{"spec": obj{"providerID": fmt.Sprintf("id-%d", n)}})
	}
	for name, c := range map[string]struct {
		between func(f *fakes, n int)
		objects int
		changed []object.Ref
		id      string
	}{
		"nothing happens": {func(*fakes, int) {}, 2, nil, ""},
		"an object changes once": {func(f *fakes, n int) {
			if n == 1 {
				change(f, n)
			}
		}, 2, nil, "id-1"},
		"a status changes all the time": {func(f *fakes, n int) {
			f.src.merge(f.machine, obj{"status": obj{"phase": fmt.Sprint(n)}})
		}, 2, nil, ""},
		"an object changes all the time": {change, 2, []object.Ref{machineNamed("a-1")}, fmt.Sprintf("id-%d", maxRounds-1)},
		"an object comes": {func(f *fakes, n int) {
			if n == 1 {
				f.addMachine("a-2")
			}
		}, 3, nil, ""},
		"an object goes": {func(f *fakes, n int) {
			if n == 1 {
				f.src.drop(f.machine)
			}
		}, 1, nil, ""},
		"an object goes after it was listed": {func(f *fakes, n int) {
			if n > 1 {
				return
			}
			change(f, n)
			lists := f.src.hook
			f.src.hook = func(r *http.Request) {
				if lists(r); strings.HasSuffix(r.URL.Path, "/machines/a-1") {
					f.src.hook = lists
					f.src.drop(f.machine)
				}
			}
		}, 1, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, a, err := backUp(t, c.between)
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Index.Objects) != c.objects || !slices.Equal(a.Index.Changed, c.changed) {
				t.Errorf("%d objects, changed %v; want %d, %v", len(a.Index.Objects), a.Index.Changed, c.objects, c.changed)
			}
			if c.id == "" {
				return
			}
			u, err := a.Object(machineNamed("a-1"))
			if err != nil {
				t.Fatal(err)
			}
			if id, _, _ := unstructured.NestedString(u.Object, "spec", "providerID"); id != c.id {
				t.Errorf("providerID of the Machine = %q, want %q", id, c.id)
			}
		})
	}
}

// TestABackupRefuses checks that a backup refuses objects that cannot be restored safely, even if they change while it
// reads.
func TestABackupRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		between func(f *fakes, n int)
		says    string
	}{
		"a deletion": {func(f *fakes, _ int) {
			f.src.merge(f.machine, obj{"metadata": obj{"deletionTimestamp": "2026-05-01T12:00:00Z"}})
		}, "being deleted"},
		"a machine without a node": {func(f *fakes, _ int) { f.src.merge(f.machine, obj{"status": obj{"nodeRef": nil}}) }, "no Node"},
		"a reference to nothing": {func(f *fakes, _ int) {
			f.src.merge(f.machine, obj{"spec": obj{"bootstrap": obj{"dataSecretName": "boot"}}})
		}, "does not exist"},
		"a move": {func(f *fakes, _ int) {
			f.src.merge(f.cluster, obj{"metadata": obj{"annotations": obj{object.MoveAnnotation: "m"}}})
		}, "held by move m"},
	} {
		t.Run(name, func(t *testing.T) {
			// The Clusters are listed before the Machines. A changed label makes the backup list them again.
			_, _, err := backUp(t, func(f *fakes, n int) {
				c.between(f, n)
				f.src.merge(f.machine, obj{"metadata": obj{"labels": obj{"n": fmt.Sprint(n)}}})
			})
			var refused *RefusedError
			if !errors.As(err, &refused) || !slices.ContainsFunc(refused.Findings, func(one mover.Finding) bool { return strings.Contains(one.Message, c.says) }) {
				t.Errorf("error %v with %+v, want a finding with %q", err, refused, c.says)
			}
		})
	}
}
