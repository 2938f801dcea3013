package transfer

import (
	"strings"
	"testing"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// TestWhatMakesAnAddressAgainIsNamed checks that a collision names the controller of the target that creates the object
// again in each attempt, such as an address for a claim.
func TestWhatMakesAnAddressAgainIsNamed(t *testing.T) {
	pool := map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackFloatingIPPool", "name": "public"}
	f := moved(t, mover.Claimed{})
	made := object.Ref{Group: "infrastructure.cluster.x-k8s.io", Kind: "DevMachine", Namespace: "fleet", Name: "a-1"}
	f.dst.put(made, obj{"metadata": obj{}})
	have := f.dst.get(made)
	if what, remedy := f.transfer.describeCollision("it differs", have); what != "it differs" || !strings.Contains(remedy, "delete it on the target") {
		t.Errorf("collision = %s, remedy %s", what, remedy)
	}
	have.SetKind("IPAddress")
	have.SetAPIVersion("ipam.cluster.x-k8s.io/v1beta2")
	have.Object["spec"] = obj{"poolRef": pool}
	what, remedy := f.transfer.describeCollision("it differs", have)
	if !strings.Contains(what, "OpenStackFloatingIPPool.infrastructure.cluster.x-k8s.io fleet/public created it on the target") || !strings.Contains(remedy, "scale the controller of OpenStackFloatingIPPool") {
		t.Errorf("collision = %s, remedy %s", what, remedy)
	}
	yes := true
	have.SetKind("Metal3Data")
	have.Object["metadata"].(obj)["ownerReferences"] = []any{obj{"apiVersion": "x.io/v1", "kind": "Metal3DataClaim", "name": "a", "uid": "u", "controller": yes}}
	if what, _ := f.transfer.describeCollision("it differs", have); !strings.Contains(what, "Metal3DataClaim.x.io fleet/a created it") {
		t.Error(what)
	}
}
