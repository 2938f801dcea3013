package lifecycle

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/testbed"
	"scute.dev/workflow"
)

// TestRollback creates a management cluster whose configuration cannot be installed, long after the pivot. Everything
// is undone in reverse order. The process is killed once during the pivot, and once during the rollback.
func TestRollback(t *testing.T) {
	ctx := harness.Deadline(t, 15*time.Minute)
	blue, green := shared.blue, shared.green
	params := strings.NewReplacer("BLUE", blue.KubeconfigPath(), "GREEN", green.KubeconfigPath()).Replace(`provider: in-memory
cluster: {namespace: undo, name: u, version: v1.36.0, workerReplicas: 1}
bootstrap: {cluster: {kubeconfig: BLUE}}
access: {kubeconfig: GREEN}
settings: {networkVersion: "7", componentsVersion: "7"}
configuration:
  manifests:
  - inline: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: configuration, namespace: nowhere}
`)
	s := newSession(t, "management-create", params, "  failurePolicy: Rollback")
	s.killWhen(ctx, "the cluster is on both sides", func(ctx context.Context) bool {
		return exists(blue, "undo", "u")(ctx) && exists(green, "undo", "u")(ctx)
	})
	s.killWhen(ctx, "the cluster is being deleted again", goes(blue, "undo", "u"))
	s.run(ctx, 1)
	if !strings.Contains(s.said(), "phase: RolledBack") {
		t.Fatalf("want a run that is rolled back:\n%s", s.said())
	}
	var undone []string
	for _, fact := range s.facts(ctx) {
		if f, ok := fact.(workflow.Undone); ok && f.Step == "" && f.NothingReason == "" {
			undone = append(undone, f.Task)
		}
	}
	want := strings.Fields(`install-cluster-configuration pivot-to-management install-management-components install-networking
		create-management-cluster install-bootstrap-components create-bootstrap-cluster pre-create`)
	if !inOrder(undone, want[:6]) {
		t.Errorf("undone = %v, want in this order %v", undone, want)
	}
	told, err := os.ReadFile(filepath.Join(s.log(), "run", "failures"))
	harness.Must(t, err)
	if !strings.Contains(string(told), "u install-cluster-configuration ") {
		t.Errorf("input of the failure handler = %s, want the failed task", told)
	}
	for _, side := range []*testbed.Side{blue, green} {
		if kinds := left(ctx, t, side, "undo"); len(kinds) > 0 {
			t.Errorf("objects remain on %s: %v", side.Name(), kinds)
		}
		for _, name := range []string{"in-memory-components", "in-memory-network"} {
			m := &corev1.ConfigMap{}
			err := side.Client().Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: name}, m)
			if err == nil && m.Data["version"] == "7" || err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("Get of %s on %s: %v, %v; want not found or an older version", name, side.Name(), m.Data, err)
			}
		}
	}
	snapshot, err := shared.bed.Cloud().Snapshot(ctx)
	harness.Must(t, err)
	for key := range snapshot {
		if strings.Contains(key, "undo/u") {
			t.Errorf("%s remains in the cloud", key)
		}
	}
}

// inOrder reports whether list contains all of want, in this order.
func inOrder(list, want []string) bool {
	at := -1
	for _, w := range want {
		i := slices.Index(list, w)
		if i <= at {
			return false
		}
		at = i
	}
	return true
}
