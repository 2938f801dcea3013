package transfer

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// sharing returns a move of a Cluster that uses a Secret which the target already has, with the given owners.
func sharing(t *testing.T, owners ...any) (f *fakes, secret object.Ref) {
	t.Helper()
	f, secret = moved(t, mover.AllCreated{}), object.Ref{Kind: "Secret", Namespace: "fleet", Name: "cloud"}
	data := obj{"k": "dg=="}
	uid := f.src.put(secret, obj{"data": data, "metadata": obj{"ownerReferences": []any{ownerOf("a", f.src.get(f.cluster).GetUID())}}})
	f.dst.put(secret, obj{"data": data, "metadata": obj{"ownerReferences": owners}})
	f.state.Plan = append(f.state.Plan, mover.Item{
		Ref: secret, Version: "v1", UID: uid, ResourceVersion: f.src.get(secret).GetResourceVersion(), Level: 1, Cluster: "a",
		Owners: []object.Owner{{Ref: f.cluster, Version: "v1beta2"}},
	})
	return f, secret
}

func ownerOf(name string, uid types.UID) obj {
	return obj{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": name, "uid": string(uid), "controller": true}
}

// create creates the missing copies and records them.
func (f *fakes) create() {
	f.t.Helper()
	o, err := f.transfer.Perform(f.t.Context(), f.state, mover.CreateCopies, func(o mover.Outcome) error {
		if some, ok := o.(mover.Created); ok {
			f.state.Apply(some, f.now)
		}
		return nil
	})
	if _, done := o.(mover.AllCreated); err != nil || !done {
		f.t.Fatalf("creating ends with %+v, %v", o, err)
	}
}

// owners returns the names of the owners of an object on the target.
func (f *fakes) owners(ref object.Ref) []string {
	f.t.Helper()
	u := f.dst.get(ref)
	if u == nil {
		f.t.Fatalf("%s is gone from the target", ref)
	}
	var names []string
	for _, o := range u.GetOwnerReferences() {
		names = append(names, o.Name)
	}
	return names
}

// TestSharedSecret checks that a Secret that was moved to the target with another cluster has both clusters as owners
// after the second move: otherwise it would be deleted with the first cluster. A Secret without owners still has none.
func TestSharedSecret(t *testing.T) {
	for name, c := range map[string]struct {
		owners []any
		want   []string
	}{
		"of another cluster": {[]any{ownerOf("b", "b-uid")}, []string{"b", "a"}},
		"of no owner":        {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f, secret := sharing(t, c.owners...)
			f.create()
			if diff := cmp.Diff(c.want, f.owners(secret)); diff != "" || !f.state.Adopted[secret] {
				t.Fatalf("adopted = %t; owners (-want +got):\n%s", f.state.Adopted[secret], diff)
			}
			for i, o := range f.dst.get(secret).GetOwnerReferences() {
				if controls := o.Controller != nil && *o.Controller; controls != (i == 0) {
					t.Errorf("owner %s is the controller: %t", o.Name, controls)
				}
			}
		})
	}
}

// TestSharedSecretRollback checks that a rollback removes the owner reference that the move added before it deletes
// that owner, even if the process crashed before it recorded the reference. The Secret must stay.
func TestSharedSecretRollback(t *testing.T) {
	for name, died := range map[string]bool{"recorded": false, "the process died": true} {
		t.Run(name, func(t *testing.T) {
			f, secret := sharing(t, ownerOf("b", "b-uid"))
			f.create()
			if died {
				delete(f.state.Adopted, secret)
				delete(f.state.Created, secret)
			}
			var writes []string
			f.dst.hook = func(r *http.Request) {
				if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/secrets/") || r.Method == http.MethodDelete {
					writes = append(writes, r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
				}
			}
			f.state.Apply(mover.RollbackStarted{Reason: "requested by an operator"}, f.now)
			f.run(mover.None)
			if f.state.Phase != mover.PhaseRolledBack || f.dst.get(f.cluster) != nil {
				t.Fatalf("phase = %s, failure %s", f.state.Phase, f.state.TransientFailure.Message)
			}
			if diff := cmp.Diff([]string{"b"}, f.owners(secret)); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			if own, cluster := slices.Index(writes, "PATCH cloud"), slices.Index(writes, "DELETE a"); own < 0 || own > cluster {
				t.Errorf("the owner reference was not removed first: %v", writes)
			}
			if slices.Contains(writes, "DELETE cloud") {
				t.Errorf("the Secret was deleted: %v", writes)
			}
		})
	}
}
