package lifecycle

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scute.dev/test/harness"
)

const (
	older = "v1.36.0"
	newer = "v1.36.1"
)

// TestWorkload creates, upgrades and deletes a workload cluster.
func TestWorkload(t *testing.T) {
	ctx := harness.Deadline(t, 15*time.Minute)
	side := shared.blue
	config := filepath.Join(t.TempDir(), "applied.yaml")
	params := strings.ReplaceAll(`provider: in-memory
cluster: {namespace: works, name: w, version: v1.36.0, controlPlaneReplicas: 3, workerReplicas: 1}
settings: {networkVersion: "1", componentsVersion: "1"}
writeConfig: {file: CONFIG}
`, "CONFIG", config)

	t.Run("create", func(t *testing.T) {
		s := newSession(t, "workload-create", params)
		harness.Must(t, side.StopControllers())
		s.run(ctx, 1) // the webhooks do not answer
		harness.Must(t, side.StartControllers(ctx))
		s.killWhen(ctx, "the cluster is being made", exists(side, "works", "w"))
		s.run(ctx, 0)
		harness.Must(t, side.WaitAvailable(ctx, "works", "w"))
		s.checkOnce(ctx, "pre-create create-workload-cluster install-networking install-components post-create", "create-workload-cluster")
		s.checkSecrets(ctx)
		workload, err := shared.bed.Workload("works", "w").Client(ctx)
		harness.Must(t, err)
		if v := written(ctx, t, workload, "in-memory-network") + written(ctx, t, workload, "in-memory-components"); v != "11" {
			t.Errorf("versions of network and components = %s, want 11", v)
		}
		kept, err := filepath.Glob(filepath.Join(s.log(), "state", "kubeconfigs", "works-w-*.kubeconfig"))
		harness.Must(t, err)
		if len(kept) != 1 {
			t.Fatalf("kubeconfigs = %v, want one", kept)
		}
		if info, err := os.Stat(kept[0]); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode of the kubeconfig = %v, error %v", info.Mode(), err)
		}
		text, err := os.ReadFile(filepath.Join(s.log(), "run", "witness"))
		harness.Must(t, err)
		if want := `workload {"kubeconfig":"` + kept[0] + "\"}\n"; string(text) != want {
			t.Errorf("the hook saw %s, want %s", text, want)
		}
		checkConfig(t, config, older)
	})
	if t.Failed() {
		return
	}

	upgraded := strings.NewReplacer(`networkVersion: "1"`, `networkVersion: "2"`, `componentsVersion: "1"`, `componentsVersion: "2"`).Replace(params) + "upgrade: {version: v1.36.1}\n"
	t.Run("upgrade", func(t *testing.T) {
		s := newSession(t, "workload-upgrade", upgraded)
		harness.Must(t, side.StopControllers())
		s.run(ctx, 1) // the webhooks do not answer
		harness.Must(t, side.StartControllers(ctx))
		s.killWhen(ctx, "machines are being replaced", rolls(side, "works", "w", newer))
		s.run(ctx, 0)
		s.checkOnce(ctx, "pre-upgrade upgrade-networking upgrade-components upgrade-cluster write-cluster-config post-upgrade", "pre-upgrade upgrade-cluster")
		s.checkSecrets(ctx)
		harness.Must(t, side.WaitAvailable(ctx, "works", "w"))
		if got := versions(ctx, side, "works", "w"); !slices.Equal(got, []string{newer, newer, newer, newer}) {
			t.Errorf("the machines have %v", got)
		}
		workload, err := shared.bed.Workload("works", "w").Client(ctx)
		harness.Must(t, err)
		if v := written(ctx, t, workload, "in-memory-network") + written(ctx, t, workload, "in-memory-components"); v != "22" {
			t.Errorf("network and components of the workload cluster: %s", v)
		}
		checkConfig(t, config, newer)
	})
	if t.Failed() {
		return
	}

	t.Run("delete", func(t *testing.T) {
		s := newSession(t, "workload-delete", params)
		harness.Must(t, side.SetPaused(ctx, "works", "w", true))
		harness.Must(t, side.KillAPIServer(ctx))
		s.run(ctx, 1)
		harness.Must(t, side.ReviveAPIServer(ctx))
		s.killWhen(ctx, "the cluster is being deleted", goes(side, "works", "w"))
		again := newSession(t, "workload-upgrade", upgraded)
		again.run(ctx, 1)
		if !strings.Contains(again.said(), "Cluster works/w is being deleted") {
			t.Errorf("an upgrade of a cluster that is being deleted says\n%s", again.said())
		}
		deletion := s.start()
		s.says(ctx, "the Cluster is paused: Cluster API does not delete its objects until it is resumed")
		harness.Must(t, side.SetPaused(ctx, "works", "w", false))
		s.end(ctx, deletion, 0)
		s.checkOnce(ctx, "pre-delete delete-cluster post-delete", "delete-cluster")
		if kinds := left(ctx, t, side, "works"); len(kinds) > 0 {
			t.Errorf("left: %v", kinds)
		}
	})
}

// checkConfig: the file has the configuration that was applied.
func checkConfig(t *testing.T, file, version string) {
	t.Helper()
	text, err := os.ReadFile(file)
	harness.Must(t, err)
	if !strings.Contains(string(text), "kind: KubeadmControlPlane\n") || !strings.Contains(string(text), "version: "+version) {
		t.Errorf("the configuration is\n%s", text)
	}
}
