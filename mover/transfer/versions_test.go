package transfer

import (
	"testing"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// A folder of clusterctl may have the objects of a kind in several versions: each is checked, whichever comes first.
func TestEachVersionOfAKindIsChecked(t *testing.T) {
	for _, versions := range [][]string{{"v1alpha4", "v1beta2"}, {"v1beta2", "v1alpha4"}, {"v1beta2", "v1beta2"}} {
		p := &scope{Transfer: &Transfer{onto: map[string]kube.Type{"Machine." + object.CoreGroup: {Versions: []string{"v1beta1", "v1beta2"}}}}}
		for i, version := range versions {
			p.members.Objects = append(p.members.Objects, mover.Member{Observed: object.Observed{Ref: capi("Machine", string(rune('a'+i))), Version: version}})
		}
		found, err := p.checkKinds(t.Context())
		if err != nil || found.Refuse() != (versions[0] != versions[1]) {
			t.Errorf("%v: %v, %+v", versions, err, found)
		}
	}
}
