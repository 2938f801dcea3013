package transfer

import (
	"testing"

	"scute.dev/mover"
)

// What both sides have is in memory while a level is deleted: no more of it than the deletion needs.
func TestALookAtBothSidesKeepsLittle(t *testing.T) {
	f := moved(t, mover.Verified{})
	fields := []any{obj{"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": obj{"f:spec": obj{}}}}
	for _, api := range []*fakeAPI{f.src, f.dst} {
		api.merge(f.cluster, obj{"metadata": obj{"managedFields": fields}, "spec": obj{"clusterNetwork": obj{"serviceDomain": "x"}}})
		api.merge(f.machine, obj{"metadata": obj{"managedFields": fields}})
	}
	if failed, err := f.transfer.Reach(t.Context(), f.state, mover.DeleteSource); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	copies, there, _, err := f.transfer.bothSides(t.Context(), f.state, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, side := range []objects{copies, there} {
		if len(side) != 2 {
			t.Errorf("%d objects, want 2", len(side))
		}
		for ref, u := range side {
			spec, _ := u.Object["spec"].(obj)
			if len(u.GetManagedFields()) > 0 || u.Object["status"] != nil || spec["clusterNetwork"] != nil {
				t.Errorf("%s: %v", ref, u.Object)
			}
		}
	}
	if spec, _ := there[f.cluster].Object["spec"].(obj); spec["paused"] != true {
		t.Errorf("the look does not say that the Cluster is paused: %v", spec)
	}
}
