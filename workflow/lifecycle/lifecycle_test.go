package lifecycle_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle"
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/lifecycle/management"
	"scute.dev/workflow/manifest"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/apply"
	"scute.dev/workflow/tasks/diagnose"
	"scute.dev/workflow/tasks/exec"
	"scute.dev/workflow/tasks/move"
	"scute.dev/workflow/tasks/pause"
	"scute.dev/workflow/tasks/providers"
)

func deps(local bool) lifecycle.Deps {
	clusters := &access.Clusters{Local: local}
	return lifecycle.Deps{
		Clusters: clusters, Namespace: "fleet", Dir: "state",
		Kinds: task.Kinds{
			"Apply": &apply.Kind{Clusters: clusters}, "Move": &move.Kind{Clusters: clusters, Resource: !local},
			"Pause": &pause.Kind{Clusters: clusters}, "Resume": &pause.ResumeKind{Clusters: clusters}, "Providers": &providers.Kind{Clusters: clusters},
		},
	}
}

func asJSON(t *testing.T, text string) json.RawMessage {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// fullParams has parameters for all six workflows.
const fullParams = `
cluster:
  name: prod
  version: v1.36.0
  controlPlaneReplicas: 3
  template: {file: cluster.yaml}
management: {kubeconfig: management.kubeconfig}
bootstrap: {cluster: {kubeconfig: bootstrap.kubeconfig}}
upgrade: {version: v1.36.1}
pause: {kustomizations: [{namespace: flux-system, name: fleet}]}
writeConfig: {file: applied.yaml}
`

func TestTheSixWorkflows(t *testing.T) {
	for name, want := range map[string]string{
		lifecycle.ManagementCreate: `pre-create create-bootstrap-cluster install-bootstrap-components create-management-cluster install-networking
			install-management-components pivot-to-management install-cluster-configuration delete-bootstrap-cluster post-create+after/write-config-1`,
		lifecycle.ManagementUpgrade: `pre-upgrade pause-controllers upgrade-management-components upgrade-networking install-management-components
			create-bootstrap-cluster install-bootstrap-components pivot-to-bootstrap upgrade-cluster! pivot-to-management
			delete-bootstrap-cluster write-cluster-config post-upgrade`,
		lifecycle.ManagementDelete: `pre-delete create-bootstrap-cluster install-bootstrap-components pivot-to-bootstrap delete-cluster!
			delete-bootstrap-cluster post-delete`,
		lifecycle.WorkloadCreate:  `pre-create create-workload-cluster install-networking install-components post-create+after/write-config-1`,
		lifecycle.WorkloadUpgrade: `pre-upgrade pause-controllers upgrade-networking upgrade-components upgrade-cluster! write-cluster-config post-upgrade`,
		lifecycle.WorkloadDelete:  `pre-delete delete-cluster! post-delete`,
	} {
		t.Run(name, func(t *testing.T) {
			d := build(t, name, fullParams, deps(true))
			var got []string
			for i := range d.Tasks {
				task := &d.Tasks[i]
				line := task.Name
				if task.PointOfNoReturn {
					line += "!"
				}
				for _, s := range task.Steps {
					if s.Name != "" {
						line += "+" + s.Name
					}
				}
				if i > 0 && (len(task.Needs) != 1 || task.Needs[0].Task != d.Tasks[i-1].Name) {
					t.Errorf("task %s needs %v, want the task before it", task.Name, task.Needs)
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
				t.Error(diff)
			}
			if again := build(t, name, fullParams, deps(true)); again.Hash() != d.Hash() {
				t.Error("a second construction has another hash")
			}
		})
	}
}

// TestTheTasksOfTheDesign checks that the tasks are those of the design, in its order, and that the pause of an upgrade
// is held until the run ends.
func TestTheTasksOfTheDesign(t *testing.T) {
	text, err := os.ReadFile("testdata/tasks.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range strings.Split(strings.TrimSpace(string(text)), "\n\n")[1:] {
		lines := strings.Split(list, "\n")
		var want, got []string
		for _, title := range lines[1:] {
			want = append(want, strings.ReplaceAll(strings.ToLower(strings.Replace(title, "EKSA ", "", 1)), " ", "-"))
		}
		d := build(t, lines[0], fullParams, deps(true))
		for i := range d.Tasks {
			if own := &d.Tasks[i].Steps[0]; own.Kind == "Pause" {
				if !own.Holds || d.Tasks[i-1].Name != "pre-upgrade" {
					t.Errorf("%s: the pause must hold, and start after pre-upgrade: %+v", lines[0], own)
				}
			} else if got = append(got, d.Tasks[i].Name); own.Releases != "" {
				t.Errorf("%s: task %s releases the pause before the run ends", lines[0], d.Tasks[i].Name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("tasks of %s (-want +got):\n%s", lines[0], diff)
		}
	}
}

// build constructs a workflow, and builds its definition.
func build(t *testing.T, name, params string, deps lifecycle.Deps) *workflow.Definition {
	t.Helper()
	named, problems := lifecycle.New(context.Background(), name, asJSON(t, params), deps)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	d, problems := workflow.Build(&v1alpha1.WorkflowRunSpec{Tasks: named.Tasks}, workflow.Options{
		Namespace: "fleet", Name: "test",
		Kind: func(name string) (workflow.KindInfo, bool) {
			kind, ok := named.Kinds[name]
			if !ok {
				kind, ok = deps.Kinds[name]
			}
			if !ok {
				return workflow.KindInfo{}, false
			}
			info := workflow.KindInfo{Validate: kind.Validate}
			if h, ok := kind.(task.Holder); ok {
				info.Holds = h.Holds()
			}
			if r, ok := kind.(task.Releaser); ok {
				info.Releases = r.Releases
			}
			return info, true
		},
	})
	if d == nil || len(problems) > 0 {
		t.Fatal(problems)
	}
	return d
}

// TestProblems checks that all problems are reported at once, with the field and a remedy.
func TestProblems(t *testing.T) {
	for title, c := range map[string]struct {
		name, params string
		daemon       bool
		want         []string
	}{
		"no such workflow": {name: "management-clone", params: "{}", want: []string{"spec.workflow.name"}},
		"no such parameter": {
			name: lifecycle.WorkloadCreate, params: "{clutser: {}, cluster: {name: prod, templat: {}, template: {inlin: a, file: b}}, upgrade: {to: x}}",
			want: []string{
				"spec.workflow.params.cluster.templat", "spec.workflow.params.cluster.template.inlin", "spec.workflow.params.clutser", "spec.workflow.params.upgrade.to",
				"spec.workflow.params.cluster.version",
			},
		},
		"a wrong type": {
			name: lifecycle.WorkloadCreate, params: "{cluster: {name: [prod], version: '1', template: {file: a}}}",
			want: []string{"spec.workflow.params.cluster.name", "spec.workflow.params.cluster.version"},
		},
		"inline templates": {
			name: lifecycle.WorkloadCreate,
			params: "{cluster: {name: prod, version: v1.36.1, variables: {REGION: north}, template: {inline: 'a: ['}}," +
				" networking: {manifests: [{inline: '{apiVersion: v1, kind: ConfigMap}'}," +
				" {inline: '{apiVersion: v1, kind: ConfigMap, metadata: {name: \"${CLUSTER_NAME}-${REGION}-${ZONE}\"}}'}," +
				" {inline: '{apiVersion: v1, kind: ConfigMap, metadata: {name: \"${CLUSTER_NAME}-${REGION}\"}}'}]}}",
			want: []string{
				"spec.workflow.params.cluster.template.inline", "spec.workflow.params.networking.manifests[0].inline",
				"spec.workflow.params.networking.manifests[1].inline",
			},
		},
		"all at once": {
			name: lifecycle.ManagementCreate, params: "{cluster: {name: Prod_1, namespace: fleet, version: '1.36', controlPlaneReplicas: 2, workerReplicas: -1}, writeConfig: {}}",
			want: []string{
				"spec.workflow.params.cluster.name", "spec.workflow.params.cluster.controlPlaneReplicas", "spec.workflow.params.cluster.workerReplicas",
				"spec.workflow.params.cluster.version", "spec.workflow.params.bootstrap", "spec.workflow.params.writeConfig",
				"spec.workflow.params.cluster.template",
			},
		},
		"no management cluster": {
			name: lifecycle.ManagementUpgrade, params: "{cluster: {name: prod, template: {file: a}}, bootstrap: {kind: {}, cluster: {}}}",
			want: []string{"spec.workflow.params.management", "spec.workflow.params.upgrade.version", "spec.workflow.params.bootstrap"},
		},
		"downgrade": {
			name: lifecycle.WorkloadUpgrade, params: "{cluster: {name: prod, version: v1.36.1, template: {file: a}}, upgrade: {version: v1.36.0}}",
			want: []string{"spec.workflow.params.upgrade.version"},
		},
		"a minor version left out": {
			name: lifecycle.WorkloadUpgrade, params: "{cluster: {name: prod, version: v1.34.1, template: {file: a}}, upgrade: {version: v1.36.0}}",
			want: []string{"spec.workflow.params.upgrade.version"},
		},
		"two sources": {
			name: lifecycle.WorkloadCreate, params: "{cluster: {name: prod, version: v1.36.1, template: {file: a, inline: b}}, networking: {manifests: [{}]}}",
			want: []string{"spec.workflow.params.cluster.template", "spec.workflow.params.networking.manifests[0]"},
		},
		"clusters paused": {
			name: lifecycle.WorkloadUpgrade, params: "{cluster: {name: prod, template: {file: a}}, upgrade: {version: v1.36.0}, pause: {all: true}}",
			want: []string{"spec.workflow.params.pause.all"},
		},
		"files in the daemon": {
			name: lifecycle.WorkloadCreate, daemon: true,
			params: "{cluster: {name: prod, namespace: other, version: v1.36.1, template: {file: a}}, management: {kubeconfig: b}, writeConfig: {file: c}}",
			want: []string{
				"spec.workflow.params.cluster.namespace", "spec.workflow.params.writeConfig.file", "spec.workflow.params.management.kubeconfig",
				"spec.workflow.params.cluster.template.file",
			},
		},
		"moving the daemon's own cluster": {
			name: lifecycle.ManagementDelete, daemon: true, params: "{cluster: {name: prod}, bootstrap: {cluster: {}}}", want: []string{"spec.workflow.name"},
		},
		"no such provider": {
			name: lifecycle.WorkloadCreate, params: "{provider: cloud, cluster: {name: prod, version: v1.36.0}}", want: []string{"spec.workflow.params.provider"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			_, problems := lifecycle.New(context.Background(), c.name, asJSON(t, c.params), deps(!c.daemon))
			var got []string
			for _, p := range problems {
				got = append(got, p.Field)
				if p.Message == "" || p.Remedy == "" {
					t.Errorf("%s: message %q, remedy %q", p.Field, p.Message, p.Remedy)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%v", diff, problems)
			}
		})
	}
}

// misplacedRegistrar binds a hook to a task of another workflow, and ignores the error.
type misplacedRegistrar struct {
	management.NoopHookRegistrar
}

func (misplacedRegistrar) Name() string { return "astray" }

func (misplacedRegistrar) BindManagementCreate(b *hook.Binder) error {
	_ = hook.Before(b, management.UpgradeCluster, func(*management.Paired) error { return nil })
	return nil
}

func TestAHookForAnUnknownTask(t *testing.T) {
	d := deps(true)
	d.Management = []management.HookRegistrar{misplacedRegistrar{}}
	_, problems := lifecycle.New(context.Background(), lifecycle.ManagementCreate, asJSON(t, fullParams), d)
	if len(problems) != 1 || !strings.Contains(problems[0].Message, `no task "upgrade-cluster"`) || !strings.Contains(problems[0].Message, "pivot-to-management") {
		t.Errorf("problems = %v, want one with the task's name", problems)
	}
	if _, problems := lifecycle.New(context.Background(), lifecycle.ManagementUpgrade, asJSON(t, fullParams), d); len(problems) > 0 {
		t.Errorf("problems of a workflow without its hooks: %v", problems)
	}
}

// TestHooksOfTheManifest checks that a manifest can add hooks to each task of a named workflow. A hook may use the
// outputs of the tasks that its task needs, and the task's own output; problems name the field.
func TestHooksOfTheManifest(t *testing.T) {
	d := deps(true)
	d.Kinds["Exec"] = &exec.Kind{Enabled: true}
	env := &manifest.Env{Kinds: d.Kinds, NamedWorkflow: func(ctx context.Context, _, name string, params json.RawMessage) (task.NamedWorkflow, []workflow.Problem) {
		return lifecycle.New(ctx, name, params, d)
	}}
	run := func(name, params, hooks string) (*workflow.Definition, []workflow.Problem) {
		spec := &v1alpha1.WorkflowRunSpec{Workflow: &v1alpha1.NamedWorkflow{Name: name, Params: &apiextensionsv1.JSON{Raw: asJSON(t, params)}}}
		if err := yaml.UnmarshalStrict([]byte(hooks), &spec.Workflow.Hooks); err != nil {
			t.Fatal(err)
		}
		definition, problems, err := env.Definition(t.Context(), "fleet", "test", spec)
		if err != nil {
			t.Fatal(err)
		}
		return definition, problems
	}
	for name, of := range map[string]string{
		lifecycle.ManagementCreate: "pivot-to-management", lifecycle.ManagementUpgrade: "write-cluster-config", lifecycle.ManagementDelete: "delete-cluster",
		lifecycle.WorkloadCreate: "create-workload-cluster", lifecycle.WorkloadUpgrade: "pause-controllers", lifecycle.WorkloadDelete: "post-delete",
	} {
		definition, problems := run(name, fullParams, "{before: {"+of+": [{name: look, kind: Exec, with: {command: [a]}}]},"+
			" after: {"+of+": [{name: push, kind: Exec, with: {command: [git, push]}}, {name: own, kind: Exec, with: {command: [echo, \"${tasks."+of+".output.x:-}\"]}}]}}")
		if definition == nil || len(problems) > 0 {
			t.Fatal(name, problems)
		}
		i := slices.IndexFunc(definition.Tasks, func(t workflow.Task) bool { return t.Name == of })
		var steps []string
		for _, s := range definition.Tasks[i].Steps {
			steps = append(steps, s.Name)
		}
		if diff := cmp.Diff([]string{"before/look", "", "after/push", "after/own"}, steps); diff != "" {
			t.Errorf("%s: steps (-want +got):\n%s", name, diff)
		}
	}
	_, problems := run(lifecycle.ManagementCreate, strings.Replace(fullParams, "version: v1.36.0", "version: '1'", 1), "{before: {pivot: [{name: a, kind: Exec, with: {command: [a]}}]},"+
		" after: {post-create: [{name: a, kind: Exec, with: {command: [a]}}, {name: b, kind: Exec, with: {comand: [a]}}, {name: a, kind: Exec, with: {command: [a]}}]}}")
	var got []string
	for _, p := range problems {
		got = append(got, p.Field)
	}
	want := []string{
		"spec.workflow.params.cluster.version", "spec.workflow.hooks.before.pivot", "spec.workflow.hooks.after.post-create[1].with.comand",
		"spec.workflow.hooks.after.post-create[2].name",
	}
	if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(problems[1].Remedy, "pivot-to-management, ") {
		t.Errorf("fields (-want +got):\n%s\n%v", diff, problems)
	}
}

// missing has parameters for all six workflows, with files that do not exist.
const missing = `
cluster: {name: prod, version: v1.36.0, template: {file: no-template.yaml}}
management: {kubeconfig: no-management.kubeconfig}
bootstrap: {cluster: {kubeconfig: no-boot.kubeconfig}}
components: {manifests: [{file: no-component.yaml}], providers: {core: "cluster-api:v1.14.2", configFile: no-clusterctl.yaml}}
networking: {manifests: [{file: no-cni.yaml}]}
configuration: {manifests: [{file: no-configuration.yaml}]}
upgrade: {version: v1.36.1}
access: {kubeconfig: no-access.kubeconfig}
writeConfig: {file: no-folder/out.yaml}
`

// TestMissingFiles checks that all files of a workflow are read before it starts, and that all problems are reported at
// once. Files that it does not read may be missing.
func TestMissingFiles(t *testing.T) {
	const (
		template, management, boot = "cluster.template.file", "management.kubeconfig", "bootstrap.cluster.kubeconfig"
		config, component, cni     = "components.providers.configFile", "components.manifests[0].file", "networking.manifests[0].file"
		configuration, access, out = "configuration.manifests[0].file", "access.kubeconfig", "writeConfig.file"
	)
	for name, want := range map[string][]string{
		lifecycle.ManagementCreate:  {config, template, component, cni, configuration, boot, out},
		lifecycle.ManagementUpgrade: {config, template, component, cni, management, boot, out},
		lifecycle.ManagementDelete:  {config, template, component, management, boot},
		lifecycle.WorkloadCreate:    {config, template, component, cni, management, out},
		lifecycle.WorkloadUpgrade:   {config, template, component, cni, management, access, out},
		lifecycle.WorkloadDelete:    {template, management},
	} {
		named, problems := lifecycle.New(t.Context(), name, asJSON(t, missing), deps(true))
		if len(problems) > 0 {
			t.Fatal(name, problems)
		}
		unread, err := named.Read(t.Context(), &task.Call{Namespace: "fleet"})
		if err != nil {
			t.Fatal(name, err)
		}
		var got []string
		for _, p := range unread {
			got = append(got, strings.TrimPrefix(p.Field, "spec.workflow.params."))
			if !strings.Contains(p.Message, "no such file or directory") {
				t.Errorf("%s: problem %s, want a missing file", name, p)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: fields (-want +got):\n%s", name, diff)
		}
	}
	// A template with unset variables is reported too, together with invalid parameters.
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(file, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: \"${ZONE}\"}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	params := "{cluster: {name: prod, version: '1', template: {file: " + file + "}}, bootstrap: {kind: {program: no-such-program, config: no-config.yaml}}}"
	named, problems := lifecycle.New(t.Context(), lifecycle.ManagementCreate, asJSON(t, params), deps(true))
	unread, err := named.Read(t.Context(), &task.Call{Namespace: "fleet"})
	var got []string
	for _, p := range unread {
		got = append(got, p.Field)
	}
	want := []string{"spec.workflow.params.cluster.template.file", "spec.workflow.params.bootstrap.kind.program", "spec.workflow.params.bootstrap.kind.config"}
	if diff := cmp.Diff(want, got); diff != "" || len(problems) != 1 || err != nil || !strings.Contains(unread[0].Message, "ZONE") {
		t.Errorf("fields (-want +got):\n%s\nproblems %v\nunread %v\nerror %v", diff, problems, unread, err)
	}
}

// TestWhatIsNotNeededIsSkipped checks that if pre-upgrade found that the cluster does not change, no bootstrap cluster
// is created and nothing is moved, and that each task reports this. Without a recorded decision, because of an earlier
// version or an ignored failure, no task is skipped.
func TestWhatIsNotNeededIsSkipped(t *testing.T) {
	for name, tasks := range map[string][]string{
		lifecycle.ManagementUpgrade: {"CreateBootstrapCluster", "InstallBootstrapComponents", "PivotToBootstrap", "UpgradeCluster", "PivotToManagement", "DeleteBootstrapCluster"},
		lifecycle.WorkloadUpgrade:   {"UpgradeCluster"},
	} {
		named, problems := lifecycle.New(t.Context(), name, asJSON(t, fullParams), deps(true))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		call := func(decision string) *task.Call {
			return &task.Call{Run: "run", Namespace: "fleet", Inputs: map[string]json.RawMessage{
				"pre-upgrade": json.RawMessage(decision), "create-bootstrap-cluster": json.RawMessage(`{"cluster": {"kubeconfig": "none.kubeconfig"}}`),
			}, Record: func(context.Context, json.RawMessage, bool) error { return nil }}
		}
		for _, kind := range tasks {
			unneeded := call(`{"needed": false, "upgradeCluster": false, "cluster": {}}`)
			if skipper, ok := named.Kinds[kind].(task.Skipper); !ok || skipper.SkipReason(unneeded) == "" || skipper.SkipReason(call(`{"cluster": {}}`)) != "" {
				t.Errorf("%s: the hooks of %s are not skipped with it", name, kind)
			}
			output, err := named.Kinds[kind].Run(t.Context(), unneeded)
			if kind == "UpgradeCluster" { // it reads the cluster again
				if err == nil || !strings.Contains(err.Error(), "management.kubeconfig") {
					t.Errorf("%s: %s does not read the cluster: %v", name, kind, err)
				}
			} else if err != nil || !strings.Contains(string(output), `"skipped":"pre-upgrade found nothing to upgrade`) {
				t.Errorf("%s: %s = %s, error %v", name, kind, output, err)
			}
			if err := named.Kinds[kind].Undo(t.Context(), call(`{"upgradeCluster": false, "cluster": {}}`)); err != nil {
				t.Errorf("%s: undo of %s = %v", name, kind, err)
			}
			if kind != "CreateBootstrapCluster" && kind != "UpgradeCluster" {
				continue
			}
			if _, err := named.Kinds[kind].Run(t.Context(), call(`{"cluster": {}}`)); err == nil { // there is no kubeconfig
				t.Errorf("%s: %s is skipped without a decision", name, kind)
			}
		}
	}
}

// TestUpgradeWithoutAPivot checks that a management cluster can upgrade itself, even in the daemon, without a bootstrap
// cluster and a pivot.
func TestUpgradeWithoutAPivot(t *testing.T) {
	const params = "{cluster: {name: prod, template: {inline: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}'}}, upgrade: {version: v1.36.1, pivot: false}}"
	d := build(t, lifecycle.ManagementUpgrade, params, deps(false))
	var names []string
	for i := range d.Tasks {
		names = append(names, d.Tasks[i].Name)
	}
	want := "pre-upgrade upgrade-management-components upgrade-networking install-management-components upgrade-cluster write-cluster-config post-upgrade"
	if diff := cmp.Diff(strings.Fields(want), names); diff != "" {
		t.Error(diff)
	}
	named, problems := lifecycle.New(t.Context(), lifecycle.ManagementUpgrade, asJSON(t, params), deps(true))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	unread, err := named.Read(t.Context(), &task.Call{Namespace: "fleet"})
	if err != nil || len(unread) != 1 || unread[0].Field != "spec.workflow.params.management" {
		t.Errorf("Read without a cluster = %v, error %v, want one problem", unread, err)
	}
}

// TestWhatIsDiagnosed checks that the default failure handler reads the clusters of a workflow, including those
// that its tasks have created by then, and no others.
func TestWhatIsDiagnosed(t *testing.T) {
	const boot, own = `{"kubeconfig":"${tasks.create-bootstrap-cluster.output.cluster.kubeconfig:-}"}`, `{"kubeconfig":"management.kubeconfig"}`
	for name, want := range map[string]string{
		lifecycle.ManagementCreate: `"cluster":{"kubeconfig":"${tasks.create-bootstrap-cluster.output.cluster.kubeconfig:-no bootstrap cluster}"},` +
			`"others":[{"kubeconfig":"${tasks.create-management-cluster.output.cluster.kubeconfig:-}"}]`,
		lifecycle.ManagementUpgrade: `"cluster":` + own + `,"others":[` + boot + `]`,
		lifecycle.ManagementDelete:  `"cluster":` + own + `,"others":[` + boot + `]`,
		lifecycle.WorkloadCreate:    `"cluster":` + own + `,"others":[{"kubeconfig":"${tasks.create-workload-cluster.output.cluster.kubeconfig:-}"}]`,
		lifecycle.WorkloadUpgrade:   `"cluster":` + own + `,"others":[{"kubeconfig":"${tasks.pre-upgrade.output.cluster.kubeconfig:-}"}]`,
		lifecycle.WorkloadDelete:    `"cluster":` + own,
	} {
		params := fullParams
		if name == lifecycle.ManagementCreate {
			params = strings.Replace(fullParams, "management: {kubeconfig: management.kubeconfig}\n", "", 1)
		}
		named, problems := lifecycle.New(t.Context(), name, asJSON(t, params), deps(true))
		if len(problems) > 0 {
			t.Fatal(name, problems)
		}
		if got := string(named.Diagnose); got != `{"namespace":"fleet","clusters":["prod"],`+want+`}` {
			t.Errorf("%s: Diagnose = %s", name, got)
		}
		if wrong := (&diagnose.Kind{Clusters: &access.Clusters{Local: true}}).Validate(named.Diagnose); len(wrong) > 0 {
			t.Errorf("%s: problems %v", name, wrong)
		}
	}
}
