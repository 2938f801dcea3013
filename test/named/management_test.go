package lifecycle

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// TestManagement creates, upgrades and deletes a management cluster. Blue is the bootstrap cluster. The clusters of the
// in-memory cloud cannot run Cluster API, so green is used as the API server of the new management cluster: the
// cluster's objects are moved to green, and its controllers replace and delete the machines.
func TestManagement(t *testing.T) {
	ctx := harness.Deadline(t, 20*time.Minute)
	blue, green := shared.blue, shared.green
	config := filepath.Join(t.TempDir(), "applied.yaml")
	params := strings.NewReplacer("CONFIG", config, "BLUE", blue.KubeconfigPath(), "GREEN", green.KubeconfigPath()).Replace(`provider: in-memory
cluster: {namespace: fleet, name: m, version: v1.36.0, controlPlaneReplicas: 3, workerReplicas: 1}
bootstrap: {cluster: {kubeconfig: BLUE}}
management: {kubeconfig: GREEN}
access: {kubeconfig: GREEN}
settings: {networkVersion: "1", componentsVersion: "1"}
configuration:
  manifests:
  - inline: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: configuration, namespace: default}
      data: {cluster: "${CLUSTER_NAME}"}
writeConfig: {file: CONFIG}
`)

	t.Run("create", func(t *testing.T) {
		s := newSession(t, "management-create", params)
		harness.Must(t, green.StopControllers())
		s.killWhen(ctx, "the cluster is being made", exists(blue, "fleet", "m"))
		s.run(ctx, 1) // the controllers of the new management cluster do not run
		mark := shared.bed.Cloud().Mark()
		harness.Must(t, green.StartControllers(ctx))
		s.run(ctx, 0)
		harness.Must(t, green.WaitAvailable(ctx, "fleet", "m"))
		harness.Must(t, blue.WaitGone(ctx, "fleet", "m"))
		s.checkOnce(ctx, `pre-create create-bootstrap-cluster install-bootstrap-components create-management-cluster install-networking
			install-management-components pivot-to-management install-cluster-configuration delete-bootstrap-cluster post-create`,
			"create-management-cluster install-management-components")
		s.checkSecrets(ctx)
		journal, err := shared.bed.Cloud().Since(mark)
		harness.Must(t, err)
		if r := journal.Replacements(); len(r) > 0 {
			t.Errorf("the pivot replaced machines:\n%s", r)
		}
		text, err := os.ReadFile(filepath.Join(s.log(), "run", "witness"))
		harness.Must(t, err)
		if want := `bootstrap {"kubeconfig":"` + blue.KubeconfigPath() + "\"}\nmanagement {\"kubeconfig\":\"" + green.KubeconfigPath() + "\"}\n"; string(text) != want {
			t.Errorf("the hooks saw %s, want %s", text, want)
		}
		checkConfig(t, config, older)
	})
	if t.Failed() {
		return
	}

	t.Run("upgrade", func(t *testing.T) {
		upgraded := strings.ReplaceAll(params, `networkVersion: "1"`, `networkVersion: "2"`) + "upgrade: {version: v1.36.1}\n"
		none := newSession(t, "management-upgrade", strings.Replace(upgraded, "name: m,", "name: none,", 1))
		none.run(ctx, 1)
		if !strings.Contains(none.said(), "Cluster fleet/none does not exist") {
			t.Errorf("an upgrade of a cluster that does not exist says\n%s", none.said())
		}
		none.checkOnce(ctx, "", "")
		s := newSession(t, "management-upgrade", upgraded)
		harness.Must(t, blue.KillAPIServer(ctx))
		s.run(ctx, 1) // the bootstrap cluster does not answer
		harness.Must(t, blue.ReviveAPIServer(ctx))
		s.killWhen(ctx, "machines are being replaced", rolls(blue, "fleet", "m", newer))
		s.run(ctx, 0)
		harness.Must(t, green.WaitAvailable(ctx, "fleet", "m"))
		harness.Must(t, blue.WaitGone(ctx, "fleet", "m"))
		s.checkOnce(ctx, `pre-upgrade upgrade-management-components upgrade-networking install-management-components create-bootstrap-cluster
			install-bootstrap-components pivot-to-bootstrap upgrade-cluster pivot-to-management delete-bootstrap-cluster write-cluster-config post-upgrade`,
			"create-bootstrap-cluster upgrade-cluster")
		s.checkSecrets(ctx)
		if got := versions(ctx, green, "fleet", "m"); !slices.Equal(got, []string{newer, newer, newer, newer}) {
			t.Errorf("the machines have %v", got)
		}
		if v := written(ctx, t, green.Client(), "in-memory-network"); v != "2" {
			t.Errorf("the network has version %s", v)
		}
		checkConfig(t, config, newer)
	})
	if t.Failed() {
		return
	}

	t.Run("delete", func(t *testing.T) {
		s := newSession(t, "management-delete", params)
		_, err := green.CreateCluster(ctx, testbed.Tiny("others", "other"))
		harness.Must(t, err)
		harness.Must(t, green.WaitAvailable(ctx, "others", "other"))
		s.run(ctx, 1) // it manages another cluster
		if !strings.Contains(s.said(), "1 other Clusters, whose machines would keep running unmanaged: others/other") {
			t.Errorf("a deletion of the manager of another cluster says\n%s", s.said())
		}
		harness.Must(t, green.Client().Delete(ctx, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "others", Name: "other"}}))
		harness.Must(t, green.WaitGone(ctx, "others", "other"))
		harness.Must(t, blue.StopControllers())
		s.run(ctx, 1) // the controllers of the bootstrap cluster are not at work
		_, err = green.CreateCluster(ctx, testbed.Tiny("others", "late"))
		harness.Must(t, err)
		harness.Must(t, blue.StartControllers(ctx))
		s.run(ctx, 1) // another cluster was made after pre-delete
		if !strings.Contains(s.said(), "keep running unmanaged: others/late") || goes(blue, "fleet", "m")(ctx) {
			t.Errorf("the cluster that manages others/late is deleted, and it says\n%s", s.said())
		}
		harness.Must(t, green.Client().Delete(ctx, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "others", Name: "late"}}))
		harness.Must(t, green.WaitGone(ctx, "others", "late"))
		s.killWhen(ctx, "the cluster is being deleted", goes(blue, "fleet", "m"))
		s.run(ctx, 0)
		s.checkOnce(ctx, "pre-delete create-bootstrap-cluster install-bootstrap-components pivot-to-bootstrap delete-cluster delete-bootstrap-cluster post-delete",
			"pre-delete install-bootstrap-components delete-cluster")
		for _, side := range []string{"blue", "green"} {
			if kinds := left(ctx, t, shared.bed.Side(side), "fleet"); len(kinds) > 0 {
				t.Errorf("objects remain on %s: %v", side, kinds)
			}
		}
	})
}
