package lifecycle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/test/harness"
	"scute.dev/test/inmemory"
)

// TestMovedAway checks a run that creates a cluster, moves it away, fails, and is resumed. The cluster is not recreated
// at the source.
func TestMovedAway(t *testing.T) {
	ctx := harness.Deadline(t, 10*time.Minute)
	blue, green := shared.blue, shared.green
	folder := t.TempDir()
	template := strings.NewReplacer("${CLUSTER_NAME}", "a", "${CONTROL_PLANE_MACHINE_COUNT}", "1", "${WORKER_MACHINE_COUNT}", "1", "${KUBERNETES_VERSION}", older).Replace(inmemory.Template)
	harness.Must(t, os.WriteFile(filepath.Join(folder, "cluster.yaml"), []byte("{apiVersion: v1, kind: Namespace, metadata: {name: away}}\n---\n"+template), 0o600))
	manifest := filepath.Join(folder, "run.yaml")
	harness.Must(t, os.WriteFile(manifest, []byte(strings.NewReplacer("FOLDER", folder, "GREEN", green.KubeconfigPath()).Replace(`apiVersion: scute.dev/v1alpha1
kind: WorkflowRun
metadata: {name: away, namespace: away}
spec:
  tasks:
  - {name: make, kind: Apply, with: {files: [FOLDER/cluster.yaml]}}
  - {name: move, kind: Move, needs: [make], with: {clusters: [a], namespace: away, to: {kubeconfig: GREEN}}}
  - {name: check, kind: Exec, needs: [move], with: {command: [test, -e, FOLDER/flag]}}
`)), 0o600))
	s := &session{t: t, dir: folder, manifest: manifest, program: shared.ctl}
	s.args = []string{"run", "--local", "-f", manifest, "--log", s.log(), "--kubeconfig", blue.KubeconfigPath()}
	s.run(ctx, 1)
	harness.Must(t, green.WaitAvailable(ctx, "away", "a"))
	harness.Must(t, os.WriteFile(filepath.Join(folder, "flag"), nil, 0o600))
	s.run(ctx, 0)
	if exists(blue, "away", "a")(ctx) {
		t.Error("the cluster was recreated at the source, so both sides manage its machines")
	}
	s.checkOnce(ctx, "make move check", "check")
	harness.Must(t, green.Client().Delete(ctx, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "away", Name: "a"}}))
	harness.Must(t, green.WaitGone(ctx, "away", "a"))
}
