package manifest_test

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow/manifest"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks"
)

func spec(t *testing.T, text string) *v1alpha1.WorkflowRunSpec {
	t.Helper()
	var s v1alpha1.WorkflowRunSpec
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

func env() *manifest.Env {
	return &manifest.Env{Kinds: tasks.Kinds(tasks.Options{Clusters: &access.Clusters{}, ExecEnabled: true})}
}

const expanded = `
tasks:
- name: config
  kind: Apply
  with:
    expand: true
    manifests:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {scute.dev/failure-policy: Ignore}}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: b, annotations: {scute.dev/needs: configmap/a}}}
- {name: after, kind: Approve, with: {message: look}, needs: [config]}
`

func TestExpandMakesATaskOfEachObjectAndHasOthersNeedAllOfThem(t *testing.T) {
	s := spec(t, expanded)
	d, problems, err := env().Definition(t.Context(), "fleet", "x", s)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	var names []string
	for _, task := range d.Tasks {
		names = append(names, task.Name)
	}
	if want := []string{"config/configmap-a", "config/configmap-b", "after"}; !slices.Equal(names, want) {
		t.Fatalf("%v, want %v", names, want)
	}
	if d.Tasks[0].Policy != v1alpha1.Ignore || d.Tasks[1].Needs[0].Task != names[0] || len(d.Tasks[2].Needs) != 2 {
		t.Errorf("%+v", d.Tasks)
	}
	if len(s.Tasks) != 2 {
		t.Error("the manifest itself was changed")
	}
}

func TestProblemsOfAnExpansionNameTheTaskOfTheManifest(t *testing.T) {
	s := spec(t, strings.Replace(expanded, "configmap/a}", "configmap/zz}", 1))
	_, problems, err := env().Definition(t.Context(), "fleet", "x", s)
	if err != nil || len(problems) == 0 || !strings.HasPrefix(problems[0].Field, "spec.tasks[0].") {
		t.Fatal(err, problems)
	}
}

// What is in a cluster is not read by a check, and what depends on it is not held against a manifest.
func TestCheckAsksNoCluster(t *testing.T) {
	s := spec(t, `
tasks:
- {name: config, kind: Apply, with: {expand: true, from: {configMapRef: {name: m, key: k}}}}
- {name: after, kind: Approve, with: {message: look}, needs: [config/configmap-a]}
`)
	if problems := env().Check("fleet", "x", s); len(problems) > 0 {
		t.Error(problems)
	}
	s.Tasks[1].Needs[0].Task = "confg"
	if problems := env().Check("fleet", "x", s); len(problems) != 1 {
		t.Error(problems)
	}
}

// The definition says what a Resume ends; its hash does not, so that a run from before that is known by its manifest.
func TestResumeReleasesItsPause(t *testing.T) {
	d, problems, err := env().Definition(t.Context(), "fleet", "run", spec(t, `
tasks:
- {name: hold, kind: Pause, with: {all: true}}
- {name: free, kind: Resume, needs: [hold], with: {task: hold}}
`))
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	if got := d.Tasks[1].Steps[0].Releases; got != "hold" {
		t.Errorf("it releases %q", got)
	}
	hash := d.Hash()
	if d.Tasks[1].Steps[0].Releases = ""; d.Hash() != hash {
		t.Error("the hash is another one")
	}
}
