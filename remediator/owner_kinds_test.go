package remediator

import (
	"os"
	"regexp"
	"testing"
)

// TestControlPlaneProfiles checks that no control plane is treated as a worker, because etcd is not asked for workers.
// The kinds are the names in owner_kinds.go that end in ControlPlane, and a provider that scute does not know.
func TestControlPlaneProfiles(t *testing.T) {
	source, err := os.ReadFile("owner_kinds.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{"EtcdadmCluster", "RKE2ControlPlane", "TalosControlPlane", "SomeControlPlane", "KubeadmControlPlane.example.com"}
	for _, found := range regexp.MustCompile(`"(\w+ControlPlane)"`).FindAllSubmatch(source, -1) {
		kinds = append(kinds, string(found[1]))
	}
	for _, kind := range kinds {
		if p := profileOf(kind); p.why == "" && !p.controlPlane {
			t.Errorf("profileOf(%s) has neither why nor controlPlane: its machines are treated as workers, and etcd is not asked. Set controlPlane", kind)
		}
	}
}
