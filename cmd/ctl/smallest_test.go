package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestTasteIsSmall checks that scutectl with the tag taste depends neither on clusterctl nor on the clients of all
// Kubernetes APIs, and that the task kinds build with that tag.
func TestTasteIsSmall(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "taste", "scute.dev/workflow/tasks").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	deps := func(flags ...string) []string {
		out, err := exec.CommandContext(t.Context(), "go", append(append([]string{"list", "-deps"}, flags...), ".")...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	small, whole := deps("-tags", "taste"), deps()
	for _, heavy := range []string{"sigs.k8s.io/cluster-api/cmd/clusterctl/client", "k8s.io/client-go/kubernetes"} {
		if slices.Contains(small, heavy) || !slices.Contains(whole, heavy) {
			t.Errorf("%s: dependency of the taste: %v, of scutectl: %v", heavy, slices.Contains(small, heavy), slices.Contains(whole, heavy))
		}
	}
}
