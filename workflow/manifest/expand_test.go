package manifest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
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
		t.Fatalf("tasks = %v, want %v", names, want)
	}
	if d.Tasks[0].Policy != v1alpha1.Ignore || d.Tasks[1].Needs[0].Task != names[0] || len(d.Tasks[2].Needs) != 2 {
		t.Errorf("tasks = %+v", d.Tasks)
	}
	if len(s.Tasks) != 2 {
		t.Error("the manifest was changed")
	}
}

func TestProblemsOfAnExpansionNameTheTaskOfTheManifest(t *testing.T) {
	s := spec(t, strings.Replace(expanded, "configmap/a}", "configmap/zz}", 1))
	_, problems, err := env().Definition(t.Context(), "fleet", "x", s)
	if err != nil || len(problems) == 0 || !strings.HasPrefix(problems[0].Field, "spec.tasks[0].") {
		t.Fatal(err, problems)
	}
}

// TestCheckAsksNoCluster checks that Check reads nothing from a cluster, and reports nothing that depends on its
// content.
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

// TestResumeReleasesItsPause checks that a definition records which pause a Resume releases. The hash does not include
// it, so that a run of an earlier version is still recognized by its manifest.
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
		t.Errorf("Releases = %q, want hold", got)
	}
	hash := d.Hash()
	if d.Tasks[1].Steps[0].Releases = ""; d.Hash() != hash {
		t.Error("the hash depends on Releases")
	}
}

// TestPoliciesOfTypes checks policies for types of objects. They take precedence over the policy of kind Apply, and the
// task's own policy over both; unset fields come from the policy of the kind.
func TestPoliciesOfTypes(t *testing.T) {
	d, problems, err := env().Definition(t.Context(), "fleet", "x", spec(t, `
policies:
- {kind: Apply, failurePolicy: Pause, timeout: 1m, retry: {max: 1}}
- {kind: Deployment, failurePolicy: Ignore, timeout: 5m}
- {kind: Job.batch, failurePolicy: IgnoreChildren}
- {kind: Job, failurePolicy: Rollback}
- {kind: DaemonSet, failurePolicy: Ignore}
- {kind: Secret, timeout: 1m}
hooks: {onFailure: [{name: note, kind: Apply, with: {manifests: [{apiVersion: v1, kind: Secret, metadata: {name: e}}]}}]}
tasks:
- name: all
  kind: Apply
  with:
    expand: true
    manifests:
    - {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}
    - {apiVersion: apps/v1, kind: Deployment, metadata: {name: b, annotations: {scute.dev/failure-policy: Abort}}}
    - {apiVersion: batch/v1, kind: Job, metadata: {name: c}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: d}}
- name: text
  kind: Apply
  with: {manifests: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: e}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: f}\n"}
- name: mixed
  kind: Apply
  with: {manifests: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: g}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: g}}]}
- {name: branch, kind: Approve, with: {message: look}, needs: [{task: text, on: Failure}]}
`))
	if err != nil || d == nil {
		t.Fatal(err, problems)
	}
	got := make(map[string]string)
	for i := range d.Tasks {
		task := &d.Tasks[i]
		got[task.Name] = fmt.Sprintf("%s (%s) %s %d", task.Policy, task.PolicySource, time.Duration(task.Steps[0].Timeout), task.Steps[0].Retry.Max)
	}
	want := map[string]string{
		"all/deployment-a": "Ignore (type) 5m0s 1", "all/deployment-b": "Abort (task) 5m0s 1", "all/job-c": "IgnoreChildren (type) 1m0s 1",
		"all/configmap-d": "Pause (kind) 1m0s 1", "text": "Ignore (type) 5m0s 1", "mixed": "Pause (kind) 1m0s 1", "branch": "Abort (default) 0s 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var said []string
	for _, p := range problems {
		said = append(said, p.Message)
	}
	wantSaid := []string{
		`no task kind is named "DaemonSet", and no task applies objects of this type`,
		`"text" has the failure policy Ignore from spec.policies for the type of its object, which takes precedence over this edge`,
	}
	if diff := cmp.Diff(wantSaid, said); diff != "" {
		t.Error(diff)
	}
}

// TestDiagnosticsByDefault checks that a run that uses a cluster has a default handler that collects evidence, if this
// is enabled. The hash is the same without it.
func TestDiagnosticsByDefault(t *testing.T) {
	const apply = "tasks:\n- {name: a, kind: Apply, with: {cluster: {kubeconfig: b.kubeconfig}, manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}"
	local := &manifest.Env{Kinds: tasks.Kinds(tasks.Options{Clusters: &access.Clusters{Local: true}, Local: true, ExecEnabled: true})}
	define := func(text string, diagnose bool) *workflow.Definition {
		local.Diagnose = diagnose
		d, problems, err := local.Definition(t.Context(), "fleet", "x", spec(t, text))
		if err != nil || d == nil {
			t.Fatal(err, problems)
		}
		return d
	}
	with, without := define(apply, true), define(apply, false)
	const both = apply + "\n- {name: b, kind: Wait, with: {object: {apiVersion: v1, kind: ConfigMap, name: a}, for: ready}}"
	for text, want := range map[string]string{apply: `{"cluster":{"kubeconfig":"b.kubeconfig"}}`, both: `{"others":[{"kubeconfig":"b.kubeconfig"}]}`} {
		if d := define(text, true); len(d.OnFailure) != 1 || d.OnFailure[0].Kind != "Diagnose" || string(d.OnFailure[0].With) != want {
			t.Errorf("handlers = %+v", d.OnFailure)
		}
	}
	if len(without.OnFailure) != 0 || with.Hash() != without.Hash() {
		t.Errorf("handlers without diagnosis %+v, hashes %s and %s", without.OnFailure, with.Hash(), without.Hash())
	}
	for what, text := range map[string]string{
		"nothing works on a cluster": "tasks: [{name: a, kind: Exec, with: {command: [a]}}]",
		"it has a handler":           apply + "\nhooks: {onFailure: [{name: own, kind: Diagnose}]}",
	} {
		if d := define(text, true); slices.ContainsFunc(d.OnFailure, func(s workflow.Step) bool { return s.Default }) {
			t.Errorf("%s: unexpected default handler: %+v", what, d.OnFailure)
		}
	}
}
