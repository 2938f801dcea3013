package lifecycle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/inmemory"
	"scute.dev/test/testbed"
)

// TestScutectl runs workflows as an operator does without own programs: with scutectl run --local and the provider that
// uses manifests in files. Green is used as the API server of the management cluster, as in TestManagement.
func TestScutectl(t *testing.T) {
	ctx := harness.Deadline(t, 20*time.Minute)
	blue, green := shared.blue, shared.green
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		harness.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	for name, version := range map[string]string{"network.yaml": "1", "network-2.yaml": "2"} {
		write(name, "{apiVersion: v1, kind: ConfigMap, metadata: {name: network, namespace: kube-system}, data: {version: \""+version+"\"}}\n")
	}
	for name, region := range map[string]string{"components.yaml": "${REGION}", "components-2.yaml": "${REGION}-2"} {
		write(name, "{apiVersion: v1, kind: ConfigMap, metadata: {name: components-of-${CLUSTER_NAME}, namespace: kube-system}, data: {region: \""+region+"\"}}\n")
	}
	flux(ctx, t, green)
	params := strings.NewReplacer("FOLDER", folder, "BLUE", blue.KubeconfigPath(), "GREEN", green.KubeconfigPath()).Replace(`
cluster:
  namespace: ops
  name: o
  version: v1.36.0
  controlPlaneReplicas: 1
  workerReplicas: 1
  variables: {REGION: north}
  template: {file: FOLDER/cluster.yaml}
bootstrap: {cluster: {kubeconfig: BLUE}}
management: {kubeconfig: GREEN}
access: {kubeconfig: GREEN}
components: {manifests: [{file: FOLDER/components.yaml}]}
networking: {manifests: [{file: FOLDER/network.yaml}]}
upgrade: {version: v1.36.1, components: {manifests: [{file: FOLDER/components-2.yaml}]}, networking: {manifests: [{file: FOLDER/network-2.yaml}]}}
pause: {kustomizations: [{namespace: default, name: fleet}], acknowledge: 30s}
writeConfig: {file: FOLDER/applied.yaml}
`)
	ctl := func(t *testing.T, workflow string) *session {
		s := newSession(t, workflow, params)
		s.program = shared.ctl
		s.args = []string{"run", "--local", "-f", s.manifest, "--log", s.log(), "--kubeconfig", blue.KubeconfigPath()}
		return s
	}

	t.Run("create", func(t *testing.T) {
		s := ctl(t, "management-create")
		s.run(ctx, 2) // the template does not exist
		write("cluster.yaml", inmemory.Template)
		s.killWhen(ctx, "the pivot is under way", exists(green, "ops", "o"))
		s.run(ctx, 0)
		harness.Must(t, green.WaitAvailable(ctx, "ops", "o"))
		harness.Must(t, blue.WaitGone(ctx, "ops", "o"))
		s.checkOnce(ctx, `pre-create create-bootstrap-cluster install-bootstrap-components create-management-cluster install-networking
			install-management-components pivot-to-management install-cluster-configuration delete-bootstrap-cluster post-create`,
			"pivot-to-management")
		s.checkSecrets(ctx)
		checkConfig(t, filepath.Join(folder, "applied.yaml"), older)
		for _, side := range []*testbed.Side{blue, green} {
			m := object("v1", "ConfigMap", "kube-system", "components-of-o")
			harness.Must(t, side.Client().Get(ctx, client.ObjectKeyFromObject(m), m))
			if region, _, _ := unstructured.NestedString(m.Object, "data", "region"); region != "north" {
				t.Errorf("region = %q on %s, want north", region, side.Name())
			}
		}
	})
	if t.Failed() {
		return
	}

	t.Run("upgrade", func(t *testing.T) {
		s := ctl(t, "management-upgrade")
		s.hook(strings.NewReplacer("FOLDER", folder, "GREEN", green.KubeconfigPath()).Replace(`
      after:
        post-upgrade:
        - name: paused
          kind: Wait
          timeout: 10s
          with:
            cluster: {kubeconfig: GREEN}
            object: {apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, namespace: default, name: fleet}
            for: {cel: object.spec.suspend}
        - {name: push, kind: Exec, with: {command: [cp, FOLDER/applied.yaml, FOLDER/pushed.yaml]}}
`))
		right, err := os.ReadFile(filepath.Join(folder, "network-2.yaml"))
		harness.Must(t, err)
		write("network-2.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: network, namespace: nowhere}}\n")
		s.run(ctx, 1)
		if suspended(ctx, t, green) {
			t.Error("Flux is still paused after the run")
		}
		write("network-2.yaml", string(right))
		s.killWhen(ctx, "the pivot back is under way", func(ctx context.Context) bool {
			return exists(blue, "ops", "o")(ctx) && exists(green, "ops", "o")(ctx) && slices.Contains(versions(ctx, green, "ops", "o"), newer)
		})
		if !suspended(ctx, t, green) {
			t.Error("Flux is not paused during the upgrade")
		}
		s.run(ctx, 0)
		if suspended(ctx, t, green) {
			t.Error("Flux is still paused after the run")
		}
		harness.Must(t, green.WaitAvailable(ctx, "ops", "o"))
		harness.Must(t, blue.WaitGone(ctx, "ops", "o"))
		if got := versions(ctx, green, "ops", "o"); !slices.Equal(got, []string{newer, newer}) {
			t.Errorf("versions of the machines = %v, want the newer one", got)
		}
		checkConfig(t, filepath.Join(folder, "applied.yaml"), newer)
		checkConfig(t, filepath.Join(folder, "pushed.yaml"), newer)
		s.checkSecrets(ctx)
		m := object("v1", "ConfigMap", "kube-system", "components-of-o")
		harness.Must(t, green.Client().Get(ctx, client.ObjectKeyFromObject(m), m))
		if region, _, _ := unstructured.NestedString(m.Object, "data", "region"); region != "north-2" {
			t.Errorf("region of the components = %q, want north-2", region)
		}
	})
	if t.Failed() {
		return
	}

	t.Run("nothing to upgrade", func(t *testing.T) {
		s := ctl(t, "management-upgrade")
		s.hook(strings.ReplaceAll(`
      after:
        pivot-to-bootstrap: [{name: pivoted, kind: Exec, with: {command: [touch, FOLDER/pivoted]}}]
`, "FOLDER", folder))
		s.args = append(s.args, "-o", "json")
		s.run(ctx, 0)
		var report struct {
			Tasks []struct {
				Name   string
				Output struct {
					Needed, UpgradeCluster *bool
					Skipped                string
				}
			}
		}
		harness.Must(t, json.NewDecoder(strings.NewReader(s.json())).Decode(&report))
		var skipped []string
		for _, task := range report.Tasks {
			if o := task.Output; o.Skipped != "" {
				skipped = append(skipped, task.Name)
			} else if task.Name == "pre-upgrade" && (o.Needed == nil || *o.Needed || o.UpgradeCluster == nil || *o.UpgradeCluster) {
				t.Errorf("pre-upgrade does not report that no upgrade is needed:\n%s", s.json())
			}
		}
		if _, err := os.Stat(filepath.Join(folder, "pivoted")); err == nil {
			t.Error("a hook of a skipped task ran")
		}
		want := "create-bootstrap-cluster install-bootstrap-components pivot-to-bootstrap upgrade-cluster pivot-to-management delete-bootstrap-cluster"
		if got := strings.Join(skipped, " "); got != want {
			t.Errorf("skipped = %s\n%s", got, s.json())
		}
	})

	t.Run("upgrade in place", func(t *testing.T) {
		params = strings.NewReplacer("upgrade: {version: v1.36.1,", "upgrade: {version: v1.36.2, pivot: false,").Replace(params)
		s := ctl(t, "management-upgrade")
		s.run(ctx, 0)
		s.checkOnce(ctx, `pre-upgrade pause-controllers upgrade-management-components upgrade-networking install-management-components upgrade-cluster
			write-cluster-config post-upgrade`, "")
		if got := versions(ctx, green, "ops", "o"); !slices.Equal(got, []string{"v1.36.2", "v1.36.2"}) {
			t.Errorf("versions of the machines = %v, want v1.36.2", got)
		}
	})
	if t.Failed() {
		return
	}

	t.Run("delete", func(t *testing.T) {
		s := ctl(t, "management-delete")
		s.killWhen(ctx, "the cluster is being deleted", goes(blue, "ops", "o"))
		s.args = append(s.args, "-o", "json")
		s.run(ctx, 0)
		var report struct {
			Phase string
			Tasks []struct{ Name, Phase string }
		}
		harness.Must(t, json.NewDecoder(strings.NewReader(s.json())).Decode(&report))
		if report.Phase != "Succeeded" || len(report.Tasks) != 7 {
			t.Errorf("report = %+v, want 7 tasks that succeeded", report)
		}
		s.checkOnce(ctx, "pre-delete create-bootstrap-cluster install-bootstrap-components pivot-to-bootstrap delete-cluster delete-bootstrap-cluster post-delete", "delete-cluster")
		for _, side := range []*testbed.Side{blue, green} {
			if kinds := left(ctx, t, side, "ops"); len(kinds) > 0 {
				t.Errorf("objects remain on %s: %v", side.Name(), kinds)
			}
		}
	})
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func kustomization() *unstructured.Unstructured {
	return object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "default", "fleet")
}

// flux creates Flux's definitions on a side, and a Kustomization. Flux's controllers do not run.
func flux(ctx context.Context, t *testing.T, side *testbed.Side) {
	t.Helper()
	data, err := os.ReadFile("../lifecycle/testdata/flux-eksa.yaml")
	harness.Must(t, err)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			break
		}
		if u.GetKind() == "CustomResourceDefinition" {
			harness.Must(t, client.IgnoreAlreadyExists(side.Client().Create(ctx, u)))
		}
	}
	for {
		u := kustomization()
		u.Object["spec"] = map[string]any{"interval": "1m"}
		err := side.Client().Create(ctx, u)
		if err == nil || apierrors.IsAlreadyExists(err) {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // until the definition is served
	}
}

func suspended(ctx context.Context, t *testing.T, side *testbed.Side) bool {
	t.Helper()
	u := kustomization()
	harness.Must(t, side.Client().Get(ctx, client.ObjectKeyFromObject(u), u))
	yes, _, err := unstructured.NestedBool(u.Object, "spec", "suspend")
	harness.Must(t, err)
	return yes
}
