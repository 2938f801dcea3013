package transfer

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// withIdentity adds a cluster-scoped identity with credentials in the namespace of its provider.
func withIdentity(f *fakeAPI) (credentials object.Ref) {
	f.identities = true
	f.put(object.Ref{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: identity().plural + "." + identity().group},
		obj{"metadata": obj{"labels": obj{"clusterctl.cluster.x-k8s.io": "", object.MoveHierarchyLabel: ""}}})
	f.put(object.Ref{Group: provider().group, Kind: "Provider", Namespace: "capd-system", Name: "dev"}, obj{"type": "InfrastructureProvider", "providerName": "dev"})
	uid := f.put(object.Ref{Group: identity().group, Kind: "DevIdentity", Name: "all"}, nil)
	credentials = object.Ref{Kind: "Secret", Namespace: "capd-system", Name: "credentials"}
	f.put(credentials, obj{"metadata": obj{"ownerReferences": []any{
		obj{"apiVersion": identity().apiVersion(), "kind": "DevIdentity", "name": "all", "uid": string(uid)},
	}}})
	return credentials
}

// TestSecretsOfOtherNamespacesAreNotShared checks that a user who may create a Move or a BackupSchedule in a namespace
// cannot obtain Secrets of another one thereby, unless an administrator permits it.
func TestSecretsOfOtherNamespacesAreNotShared(t *testing.T) {
	for name, c := range map[string]struct {
		shares func(string) bool
		moves  bool
	}{
		"shared":     {func(namespace string) bool { return namespace == "fleet" }, true},
		"not shared": {func(string) bool { return false }, false},
		"own rights": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Claimed{})
			credentials := withIdentity(f.src)
			f.transfer.Shares = c.shares
			if err := f.transfer.connect(t.Context(), f.state.Spec, "", false); err != nil {
				t.Fatal(err)
			}
			members, _, err := f.transfer.members(t.Context(), f.state.Spec, everyKind)
			if err != nil {
				t.Fatal(err)
			}
			moves := slices.ContainsFunc(members.Objects, func(m mover.Member) bool { return m.Ref == credentials })
			left := slices.ContainsFunc(members.Excluded, func(w mover.ObjectReason) bool { return w.Ref == credentials })
			if moves != c.moves || left == c.moves {
				t.Errorf("moves %v, reported as left %v", moves, left)
			}
		})
	}
}

// TestTheTargetNeedsWhatIsNotShared checks that the target must have its own copies of Secrets that do not move.
func TestTheTargetNeedsWhatIsNotShared(t *testing.T) {
	for name, there := range map[string]bool{"there": true, "missing": false} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Claimed{})
			credentials := withIdentity(f.src)
			withIdentity(f.dst)
			if !there {
				f.dst.drop(credentials)
			}
			f.transfer.Shares = func(string) bool { return false }
			outcome, err := f.transfer.preflight(t.Context(), f.state)
			if err != nil {
				t.Fatal(err)
			}
			done, _ := outcome.(mover.PreflightDone)
			severity := mover.Error
			if there {
				severity = mover.Warning
			}
			var found []mover.Finding
			for _, one := range done.Findings {
				if strings.Contains(one.Field, credentials.String()) {
					found = append(found, one)
				}
			}
			if len(found) != 1 || found[0].Severity != severity || !strings.Contains(found[0].Remedy, "shareCredentialsWith") {
				t.Errorf("findings = %+v", found)
			}
		})
	}
}

// TestObjectsOfOtherNamespacesAreNotShared checks that objects of any kind in other namespaces are left: even a
// template may have files with credentials.
func TestObjectsOfOtherNamespacesAreNotShared(t *testing.T) {
	kind := func(group, kind, namespace, name, uid, owner string) object.Observed {
		o := object.Observed{Ref: object.Ref{Group: group, Kind: kind, Namespace: namespace, Name: name}, UID: types.UID(uid)}
		if owner != "" {
			o.Owners = []object.Owner{{UID: types.UID(owner)}}
		}
		return o
	}
	cluster := kind(object.CoreGroup, "Cluster", "mine", "c", "1", "")
	cluster.Cluster = &object.ClusterFacts{ClassNamespace: "others", ClassName: "k"}
	world := []object.Observed{
		cluster, kind(object.CoreGroup, "ClusterClass", "others", "k", "2", ""),
		kind("bootstrap.cluster.x-k8s.io", "KubeadmConfigTemplate", "others", "with-files", "3", "2"),
	}
	for shared, want := range map[bool]int{true: 3, false: 1} {
		f := &Transfer{Shares: func(string) bool { return shared }}
		got := f.excludeUnshared("mine", mover.Select(world, mover.Selection{Namespace: "mine", All: true}))
		if len(got.Objects) != want || len(got.Excluded) != 3-want {
			t.Errorf("shared %v: %d objects move and %d are left: %+v", shared, len(got.Objects), len(got.Excluded), got.Excluded)
		}
	}
}
