package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"scute.dev/kube/document"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

func TestRender(t *testing.T) {
	three := 3
	values := variables(provider.Cluster{Namespace: "fleet", Name: "prod", Version: "v1.36.0", ControlPlaneReplicas: &three, Variables: map[string]string{"REGION": "north"}})
	objects, err := render([]byte(`
# a comment
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "${CLUSTER_NAME}", namespace: "${NAMESPACE}"}
data: {version: "${KUBERNETES_VERSION}", nodes: "${CONTROL_PLANE_MACHINE_COUNT}+${WORKER_MACHINE_COUNT}", region: "${REGION}", zone: "${ZONE:=a}"}
---
`), values)
	if err != nil || len(objects) != 1 {
		t.Fatal(objects, err)
	}
	data := objects[0].Object["data"].(map[string]any)
	if objects[0].GetName() != "prod" || objects[0].GetNamespace() != "fleet" || data["version"] != "v1.36.0" || data["nodes"] != "3+0" || data["region"] != "north" || data["zone"] != "a" {
		t.Errorf("render = %v", objects[0].Object)
	}
}

func TestRenderRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"a: ${MISSING}":                "MISSING",
		"a: b":                         "document 1 lacks",
		"{s3cr3t":                      "document 1 cannot be parsed",
		"apiVersion: v1\nkind: Secret": "lacks",
	} {
		if _, err := render([]byte(text), nil); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("render(%q) = %v", text, err)
		}
	}
}

// TestUpgradeObjects checks that the template of an upgrade only has numbers of machines that are given, or that the
// cluster has.
func TestUpgradeObjects(t *testing.T) {
	template := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {nodes: \"${WORKER_MACHINE_COUNT}\"}\n"
	p := &ManifestProvider{params: Params{Cluster: ClusterParams{Template: &Source{Inline: template}}}}
	if _, err := p.UpgradeObjects(nil, provider.Cluster{}); !task.IsFinal(err) || !strings.Contains(err.Error(), "cluster.workerReplicas") {
		t.Errorf("UpgradeObjects without a number = %v, want a final error", err)
	}
	for _, c := range []provider.Cluster{{WorkerReplicas: new(2)}, {Variables: map[string]string{workerCount: "2"}}} {
		objects, err := p.UpgradeObjects(nil, c)
		if err != nil || objects[0].Object["data"].(map[string]any)["nodes"] != "2" {
			t.Errorf("UpgradeObjects = %v, error %v", objects, err)
		}
	}
	if objects, err := p.ClusterObjects(nil, provider.Cluster{}); err != nil || objects[0].Object["data"].(map[string]any)["nodes"] != "0" {
		t.Errorf("ClusterObjects of a creation = %v, error %v", objects, err)
	}
}

// TestTemplatesAreBounded checks that the size of a filled template is limited. Templates are filled when a resource is
// validated, before anything runs, and must not crash the daemon.
func TestTemplatesAreBounded(t *testing.T) {
	source := Source{Inline: "a: b # " + strings.Repeat("${A}", 1000)}
	problems := source.check("cluster.template", false, map[string]string{"A": strings.Repeat("a", 100_000)})
	if len(problems) != 1 || problems[0].Field != "cluster.template.inline" || !strings.Contains(problems[0].Message, "too much text") {
		t.Errorf("problems = %v, want one about the size", problems)
	}
	if _, err := render([]byte("a: ["+strings.Repeat("1,", 1<<20)+"]"), nil); !errors.Is(err, document.ErrTooLarge) || strings.Contains(err.Error(), "variables") {
		t.Errorf("render of many values = %v, want ErrTooLarge without advice about variables", err)
	}
}

// recordingKind is a kind that records its inputs.
type recordingKind struct{ with []string }

func (*recordingKind) Validate(json.RawMessage) []workflow.Problem { return nil }

func (a *recordingKind) Run(_ context.Context, c *task.Call) (json.RawMessage, error) {
	a.with = append(a.with, string(c.With))
	return nil, nil
}

func (*recordingKind) Undo(context.Context, *task.Call) error { return nil }

// TestComponentsOfAnUpgrade checks that an upgrade installs the components in upgrade.components in a cluster that
// lacks them, so that the upgraded components of a management cluster are not replaced.
func TestComponentsOfAnUpgrade(t *testing.T) {
	manifests := func(version string) Components {
		return Components{
			Providers: json.RawMessage(`{"core": "cluster-api:` + version + `"}`),
			Manifests: Manifests{Manifests: []Source{{Inline: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {version: " + version + "}}"}}},
		}
	}
	upgraded := manifests("v2.0.0")
	for upgrades, want := range map[bool]string{false: "v1.0.0", true: "v2.0.0"} {
		k := &recordingKind{}
		params := Params{Components: manifests("v1.0.0"), Upgrade: UpgradeParams{Components: &upgraded}, isUpgrade: upgrades}
		p, problems := NewManifestProvider(params, provider.Cluster{}, &Deps{Clusters: &access.Clusters{Local: true}, Kinds: task.Kinds{"Apply": k, "Providers": k}})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		c := provider.NewContext(t.Context(), &task.Call{}, &access.Clusters{Local: true})
		if err := p.InstallComponents(&c, access.ClusterRef{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(k.with, " "); strings.Count(got, want) != 2 || len(k.with) != 2 {
			t.Errorf("upgrade %v installs %s", upgrades, got)
		}
	}
}
