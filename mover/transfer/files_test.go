package transfer

import (
	"slices"
	"strings"
	"testing"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/archive"
)

// withFiles stores a template of the Cluster's machines that reads a file from a Secret without owners.
func withFiles(f *fakes) (secret object.Ref) {
	for _, side := range []*fakeAPI{f.src, f.dst} {
		side.identities = true
		side.put(object.Ref{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: configTemplate().plural + "." + configTemplate().group},
			obj{"metadata": obj{"labels": obj{"clusterctl.cluster.x-k8s.io": ""}}})
	}
	secret = object.Ref{Kind: "Secret", Namespace: "fleet", Name: "ntp"}
	f.src.put(object.Ref{Group: configTemplate().group, Kind: configTemplate().kind, Namespace: "fleet", Name: "a"}, obj{
		"metadata": obj{"ownerReferences": []any{obj{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "a", "uid": string(f.src.get(f.cluster).GetUID())}}},
		"spec":     obj{"template": obj{"spec": obj{"files": []any{obj{"path": "/etc/ntp.conf", "contentFrom": obj{"secret": obj{"name": "ntp", "key": "conf"}}}}}}},
	})
	f.src.merge(f.machine, obj{"spec": obj{"bootstrap": obj{"configRef": obj{"apiGroup": configTemplate().group, "kind": configTemplate().kind, "name": "a"}}}})
	f.src.put(secret, nil)
	return secret
}

// TestWhatFilesAreInIsCopied checks that a backup includes a Secret that a bootstrap template reads files from.
func TestWhatFilesAreInIsCopied(t *testing.T) {
	var secret object.Ref
	_, a, err := backUpAfter(t, func(f *fakes) { secret = withFiles(f) }, func(*fakes, int) {})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(a.Index.Objects, func(e archive.Entry) bool { return e.Ref == secret })
	if i < 0 || !strings.Contains(a.Index.Objects[i].KeepReason, "it is referenced by KubeadmConfigTemplate") {
		t.Errorf("objects = %+v, want the Secret", a.Index.Objects)
	}
}

// TestABackupMayHaveAddresses checks that an address, which prevents a move, is only a warning for a backup: a copy
// does not release it.
func TestABackupMayHaveAddresses(t *testing.T) {
	found := new(Backup).check(mover.Members{AddressFindings: []mover.Finding{{Severity: mover.Error, Field: "IPAddress fleet/a"}}})
	if len(found) != 1 || found[0].Severity != mover.Warning || found[0].Field != "IPAddress fleet/a" {
		t.Errorf("findings = %+v, want one warning", found)
	}
}
