package transfer

import (
	"path/filepath"
	"strings"
	"testing"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/archive"
)

// withFiles stores a template of the Cluster's machines, which takes a file from a Secret that nobody owns.
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

// New machines of the target need the Secrets that their files are in: they move, or the target has them.
func TestTheTargetNeedsWhatFilesAreIn(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(f *fakes, secret object.Ref)
		severity mover.Severity
		says     string
	}{
		"moves": {func(f *fakes, secret object.Ref) {
			f.src.put(secret, obj{"metadata": obj{"labels": obj{object.MoveLabel: "", "cluster.x-k8s.io/cluster-name": "a"}}})
		}, "", ""},
		"stays, and the target has none": {func(*fakes, object.Ref) {}, mover.Error, "the target does not show one: KubeadmConfigTemplate"},
		"stays, and the target has one":  {func(f *fakes, secret object.Ref) { f.dst.put(secret, nil) }, mover.Warning, "the one of the target is used: KubeadmConfigTemplate"},
		"does not exist":                 {func(f *fakes, secret object.Ref) { f.src.drop(secret) }, mover.Warning, "Secret fleet/ntp, which does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Claimed{})
			secret := withFiles(f)
			c.change(f, secret)
			outcome, err := f.transfer.preflight(t.Context(), f.state)
			if err != nil {
				t.Fatal(err)
			}
			done, _ := outcome.(mover.PreflightDone)
			var found []mover.Finding
			for _, one := range done.Findings {
				if strings.Contains(one.Field+one.Message, secret.String()) {
					found = append(found, one)
				}
			}
			switch {
			case c.severity == "" && len(found) == 0:
			case len(found) != 1 || found[0].Severity != c.severity || !strings.Contains(found[0].Message, c.says):
				t.Errorf("%+v", found)
			}
		})
	}
}

// A backup does not have them either, and says so.
func TestABackupNamesWhatFilesAreIn(t *testing.T) {
	f := moved(t, mover.Claimed{})
	f.src.merge(f.cluster, obj{"metadata": obj{"annotations": nil}, "spec": obj{"paused": nil}})
	secret := withFiles(f)
	w, err := archive.Create(filepath.Join(t.TempDir(), "backup"), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &Backup{Source: f.src.cluster(t, "source"), Selection: mover.Selection{Namespace: "fleet", Clusters: []string{"a"}}, Keeper: w}
	_, found, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].Severity != mover.Warning || found[0].Field != secret.String() || !strings.Contains(found[0].Message, "not in the backup") {
		t.Errorf("%+v", found)
	}
}

// A copy takes no address out of its pool: what forbids a move is a warning for a backup.
func TestABackupMayHaveAddresses(t *testing.T) {
	found := &findings{}
	b := &Backup{}
	b.check(mover.Members{Addresses: []mover.Finding{{Severity: mover.Error, Field: "IPAddress fleet/a"}}}, found)
	if len(found.list) != 1 || found.list[0].Severity != mover.Warning || found.list[0].Field != "IPAddress fleet/a" {
		t.Errorf("%+v", found.list)
	}
}
