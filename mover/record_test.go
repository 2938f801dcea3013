package mover_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/mover"
)

const (
	recordManifest = "apiVersion: addons.cluster.x-k8s.io/v1beta2\nkind: ClusterResourceSetBinding\nmetadata: {name: a, namespace: fleet%s}\nspec: {clusterName: a, bindings: [%s]}"
	cni            = "{clusterResourceSetName: cni, resources: [{kind: ConfigMap, name: cni, applied: true, hash: x}]}"
	cniHere        = "{clusterResourceSetName: cni, resources: [{kind: ConfigMap, name: cni, applied: false}]}"
	csi            = "{clusterResourceSetName: csi}"
)

func record(t *testing.T, meta, parts string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, fmt.Sprintf(recordManifest, meta, parts))
}

// TestARecordIsComparedByItsSets checks that a ClusterResourceSetBinding is compared by its sets. The controllers of
// both sides write to it while its Cluster is paused, which must not count as a change unless a set is added or
// removed.
func TestARecordIsComparedByItsSets(t *testing.T) {
	for name, c := range map[string]struct {
		want, have   string
		same, equals bool
	}{
		"the same":              {cni, cni, true, true},
		"applied again":         {cni, cniHere, true, true},
		"in another order":      {cni + "," + csi, csi + "," + cni, true, true},
		"one of the target":     {cni, cni + "," + csi, true, false},
		"one that it lacks":     {cni + "," + csi, cni, false, false},
		"none":                  {"", "", true, true},
		"nothing on the target": {cni, "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			want, have := record(t, "", c.want), record(t, ", ownerReferences: [{apiVersion: v1, kind: X, name: x, uid: u}]", c.have)
			if field, same := mover.Contains(want, have); same != c.same {
				t.Errorf("Contains = %t, field %s", same, field)
			}
			a, errA := mover.ContentHash(want)
			b, errB := mover.ContentHash(have)
			if errA != nil || errB != nil || (a == b) != c.equals {
				t.Errorf("hashes %s and %s, errors %v and %v", a, b, errA, errB)
			}
		})
	}
	other := record(t, "", cni)
	other.Object["spec"].(map[string]any)["clusterName"] = "b"
	if field, same := mover.Contains(record(t, "", cni), other); same || field != ".spec.clusterName" {
		t.Errorf("Contains for a record of another Cluster = %t, field %s", same, field)
	}
}

func TestMergedRecord(t *testing.T) {
	parts, missing := mover.MergedRecord(record(t, "", cni+","+csi), record(t, "", cniHere))
	want := record(t, "", cniHere+","+csi).Object["spec"].(map[string]any)["bindings"]
	if diff := cmp.Diff(want, any(parts)); diff != "" || !missing {
		t.Errorf("MergedRecord: missing %t, parts (-want +got):\n%s", missing, diff)
	}
	if _, missing := mover.MergedRecord(record(t, "", cni), record(t, "", csi+","+cniHere)); missing {
		t.Error("MergedRecord reports a part as missing that exists")
	}
}
