package transfer

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// messagesAbout returns the findings of a preflight that mention an object.
func (f *fakes) messagesAbout(ref object.Ref) (found []mover.Finding) {
	f.t.Helper()
	outcome, err := f.transfer.preflight(f.t.Context(), f.state)
	if err != nil {
		f.t.Fatal(err)
	}
	done, _ := outcome.(mover.PreflightDone)
	for _, one := range done.Findings {
		if strings.Contains(one.Field+one.Message, ref.String()) {
			found = append(found, one)
		}
	}
	return found
}

// TestCredentialsOfAnotherNamespace checks that credentials in another namespace are copied only with the user's own
// permissions. The daemon does not copy them: a user who may write the reference could obtain any Secret. In that case
// the target must already have them.
func TestCredentialsOfAnotherNamespace(t *testing.T) {
	secret := object.Ref{Kind: "Secret", Namespace: "vault", Name: "cloud"}
	for name, c := range map[string]struct {
		source, target, daemon bool
		severity               mover.Severity
		says                   string
	}{
		"copied":                         {true, false, false, mover.Warning, "it is copied and also stays at the source: it is referenced by Machine"},
		"not copied":                     {true, false, true, mover.Error, "it was not found on the target: it is referenced by Machine"},
		"not copied, the target has one": {true, true, true, mover.Warning, "the existing object on the target is used: it is referenced by Machine"},
		"on no side":                     {false, false, false, mover.Error, "it was not found on the target: Machine"},
		"on the target alone":            {false, true, false, mover.Warning, "the existing object on the target is used: Machine"},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Claimed{})
			f.src.merge(f.machine, obj{"spec": obj{"credentialsRef": obj{"name": "cloud", "namespace": "vault"}}})
			for api, has := range map[*fakeAPI]bool{f.src: c.source, f.dst: c.target} {
				api.put(object.Ref{Kind: "Namespace", Name: "vault"}, nil)
				if has {
					api.put(secret, nil)
				}
			}
			if c.daemon {
				f.transfer.Shares = func(string) bool { return true }
			}
			found := f.messagesAbout(secret)
			if len(found) != 1 || found[0].Severity != c.severity || !strings.Contains(found[0].Message, c.says) {
				t.Errorf("findings = %+v", found)
			}
		})
	}
}

// TestAClusterOfAnotherNamespaceKeepsWhatItNames checks that an object stays if a Cluster of another namespace
// references it.
func TestAClusterOfAnotherNamespaceKeepsWhatItNames(t *testing.T) {
	f := moved(t, mover.Claimed{})
	secret := object.Ref{Kind: "Secret", Namespace: "fleet", Name: "cloud"}
	f.src.put(secret, ownedBy(f.cluster, f.src.get(f.cluster).GetUID()))
	f.src.put(object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: "other", Name: "z"}, nil)
	f.src.put(object.Ref{Group: "infrastructure.cluster.x-k8s.io", Kind: "DevMachine", Namespace: "other", Name: "z"},
		obj{"spec": obj{"credentialsRef": obj{"name": "cloud", "namespace": "fleet"}}})
	found := f.messagesAbout(secret)
	if !slices.ContainsFunc(found, func(one mover.Finding) bool {
		return strings.Contains(one.Message, "also stays at the source: it is also referenced by DevMachine.infrastructure.cluster.x-k8s.io other/z")
	}) || slices.ContainsFunc(found, func(one mover.Finding) bool { return one.Severity == mover.Error }) {
		t.Errorf("findings = %+v", found)
	}
}

// TestObjectsOfOtherNamespacesThatMayNotBeListed checks that a warning reports kinds that may not be listed in other
// namespaces, because their references are unknown.
func TestObjectsOfOtherNamespacesThatMayNotBeListed(t *testing.T) {
	f := moved(t, mover.Claimed{})
	f.src.put(object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: "other", Name: "z"}, nil)
	f.src.deny = func(r *http.Request) string {
		if strings.HasSuffix(r.URL.Path, "/v1beta2/devmachines") {
			return `User "scute" cannot list resource "devmachines"`
		}
		return ""
	}
	found := f.findings(t)
	if !slices.ContainsFunc(found, func(one mover.Finding) bool {
		return one.Severity == mover.Warning && strings.Contains(one.Message, "may not list DevMachine.infrastructure.cluster.x-k8s.io in other namespaces") && one.Remedy != ""
	}) {
		t.Errorf("findings = %+v, want a warning", found)
	}
}

// TestCredentialsOfAnIdentityWithoutInventory checks that the Secret of a cluster-scoped identity is found without
// clusterctl's inventory, although the reference has no namespace.
func TestCredentialsOfAnIdentityWithoutInventory(t *testing.T) {
	f := moved(t, mover.Claimed{})
	withIdentity(f.src)
	f.src.drop(object.Ref{Group: provider().group, Kind: "Provider", Namespace: "capd-system", Name: "dev"})
	secret := object.Ref{Kind: "Secret", Namespace: "capd-system", Name: "bare"}
	f.src.put(secret, nil)
	f.src.merge(object.Ref{Group: identity().group, Kind: "DevIdentity", Name: "all"}, obj{"spec": obj{"secretRef": "bare"}})
	f.src.merge(f.machine, obj{"spec": obj{"identityRef": obj{"kind": "DevIdentity", "name": "all"}}})
	if err := f.transfer.connect(t.Context(), f.state.Spec, "", false); err != nil {
		t.Fatal(err)
	}
	members, _, err := f.transfer.members(t.Context(), f.state.Spec, everyKind)
	if err != nil || !slices.ContainsFunc(members.Objects, func(m mover.Member) bool { return m.Ref == secret && m.KeepReason != "" }) {
		t.Errorf("error %v, objects %+v", err, members.Objects)
	}
}

// TestWhatStaysIsTakenFromItsOwners checks that an object that stays at the source loses its references to owners that
// leave: the garbage collector would delete it.
func TestWhatStaysIsTakenFromItsOwners(t *testing.T) {
	f := moved(t, mover.Verified{})
	secret := object.Ref{Kind: "Secret", Namespace: "fleet", Name: "cloud"}
	owner := f.src.get(f.cluster).GetUID()
	uid := f.src.put(secret, obj{"metadata": obj{"ownerReferences": []any{ownerOf("a", owner), ownerOf("b", "b-uid")}}})
	f.state.Created[secret] = f.dst.put(secret, nil)
	f.state.Plan = append(f.state.Plan, mover.Item{
		Ref: secret, Version: "v1", UID: uid, Level: 1, Cluster: "a", KeepReason: "it is also referenced by somebody",
		Owners: []object.Owner{{Ref: f.cluster, Version: "v1beta2"}},
	})
	f.run(mover.AwaitResume)
	if f.src.get(f.cluster) != nil {
		t.Fatal("the source was not emptied")
	}
	f.checkExists(f.src, secret)
	if owners := f.src.get(secret).GetOwnerReferences(); len(owners) != 1 || owners[0].Name != "b" {
		t.Errorf("owners = %+v, want b", owners)
	}
}
