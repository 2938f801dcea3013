package archive_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"scute.dev/kube/object"
	"scute.dev/mover/archive"
	"scute.dev/pause"
)

// clusterctlFolder writes a Cluster that clusterctl has paused, and its Secret, as clusterctl does.
func clusterctlFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "[old]*") // a valid name, with special characters of patterns
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := cluster()
	c.Object["spec"] = map[string]any{"paused": true}
	for name, u := range map[string]map[string]any{"Cluster_fleet_prod.yaml": c.Object, "Secret_fleet_prod-ca.yaml": secret().Object} {
		data, err := yaml.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAFolderOfClusterctl(t *testing.T) {
	dir := clusterctlFolder(t)
	a, err := archive.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Index.Objects) != 2 || !pause.IsCluster(a.Index.Objects[0].Ref) || a.Index.Namespace != "fleet" || a.Index.Source.Cluster != "" {
		t.Errorf("index = %+v", a.Index)
	}
	u, err := a.Object(a.Index.Objects[0].Ref)
	if err != nil || object.Observe(u).Cluster.Paused || a.Index.Objects[0].FoundPaused {
		t.Errorf("the pause of clusterctl must not count as a pause of a user: %v, error %v", u, err)
	}
	again, err := archive.Open(dir, nil)
	if err != nil || again.Index.ID != a.Index.ID || len(a.Index.ID) != 32 {
		t.Errorf("IDs of the same folder = %s and %s, error %v", a.Index.ID, again.Index.ID, err)
	}
}

func TestAFolderOfClusterctlThatIsNotWhole(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(dir string) error
		says  string
	}{
		"no Cluster": {func(dir string) error { return os.Remove(filepath.Join(dir, "Cluster_fleet_prod.yaml")) }, "no Cluster"},
		"another name": {func(dir string) error {
			return os.Rename(filepath.Join(dir, "Secret_fleet_prod-ca.yaml"), filepath.Join(dir, "Secret_fleet_other.yaml"))
		}, "damaged"},
		"cut": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "Secret_fleet_prod-ca.yaml"), []byte("{kind: "), 0o600)
		}, "damaged"},
		"a reference leads nowhere": {func(dir string) error {
			return change(filepath.Join(dir, "Cluster_fleet_prod.yaml"), "spec:\n", "spec:\n  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevCluster, name: prod}\n")
		}, "is incomplete"},
		"an owner is missing": {func(dir string) error {
			return change(filepath.Join(dir, "Secret_fleet_prod-ca.yaml"), "metadata:\n",
				"metadata:\n  labels: {cluster.x-k8s.io/cluster-name: prod}\n  ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, name: m, uid: lost}]\n")
		}, "is incomplete"},
		"being deleted": {func(dir string) error {
			return change(filepath.Join(dir, "Cluster_fleet_prod.yaml"), "metadata:\n", "metadata:\n  deletionTimestamp: \"2026-11-23T09:00:00Z\"\n")
		}, "being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := clusterctlFolder(t)
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			_, err := archive.Open(dir, nil)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Open = %v, want %q", err, c.says)
			}
		})
	}
}

func change(file, from, to string) error {
	data, err := os.ReadFile(file)
	if err == nil && !strings.Contains(string(data), from) {
		err = errors.New("nothing to change")
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.Replace(string(data), from, to, 1)), 0o600)
}
