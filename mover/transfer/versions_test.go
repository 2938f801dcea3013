package transfer

import (
	"testing"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// TestEachVersionOfAKindIsChecked checks each version of a kind in any order: a folder of clusterctl may have objects
// in several versions.
func TestEachVersionOfAKindIsChecked(t *testing.T) {
	for _, versions := range [][]string{{"v1alpha4", "v1beta2"}, {"v1beta2", "v1alpha4"}, {"v1beta2", "v1beta2"}} {
		p := &scope{Transfer: &Transfer{targetTypes: map[string]kube.Type{"Machine." + object.CoreGroup: {Versions: []string{"v1beta1", "v1beta2"}}}}}
		for i, version := range versions {
			p.members.Objects = append(p.members.Objects, mover.Member{Observed: object.Observed{Ref: capi("Machine", string(rune('a'+i))), Version: version}})
		}
		found, err := p.checkKinds(t.Context())
		if err != nil || found.HasErrors() != (versions[0] != versions[1]) {
			t.Errorf("versions %v: error %v, findings %+v", versions, err, found)
		}
	}
}
