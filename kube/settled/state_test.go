package settled_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"scute.dev/kube/settled"
)

// loadObjects returns the objects of testdata/cluster.yaml by name, with merge patches; an empty
// patch removes the object.
func loadObjects(t *testing.T, patches map[string]string) map[string]*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile("testdata/cluster.yaml")
	must(t, err)
	objects := make(map[string]*unstructured.Unstructured)
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		must(t, err)
		document, err = yaml.YAMLToJSON(document)
		must(t, err)
		u := &unstructured.Unstructured{}
		must(t, u.UnmarshalJSON(document))
		patch, patched := patches[u.GetName()]
		if patched && patch == "" {
			continue
		}
		merge, err := yaml.YAMLToJSON([]byte(patch))
		must(t, err)
		if patched {
			document, err = jsonpatch.MergePatch(document, merge)
			must(t, err)
			must(t, u.UnmarshalJSON(document))
		}
		objects[u.GetName()] = u
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func problemsOf(t *testing.T, object string, patches map[string]string) string {
	t.Helper()
	objects := loadObjects(t, patches)
	s := settled.State{Object: objects[object], ControlPlane: objects["prod-cp"]}
	for _, name := range []string{"prod-md", "old", "new", "cp-1", "worker-1"} {
		if objects[name] != nil {
			s.Members = append(s.Members, objects[name])
		}
	}
	return strings.Join(s.Problems(), "\n")
}

func TestSettled(t *testing.T) {
	for _, object := range []string{"prod", "prod-cp", "prod-md", "new", "old"} {
		if why := problemsOf(t, object, nil); why != "" {
			t.Errorf("%s: Missing = %s, want none", object, why)
		}
	}
}

// TestNotSettled checks that each sign of an unfinished rollout is reported.
func TestNotSettled(t *testing.T) {
	const deleted = "metadata: {deletionTimestamp: '2026-11-01T00:00:00Z'}"
	for name, c := range map[string]struct {
		object  string
		patches map[string]string
		says    string
	}{
		"no object":            {"prod", map[string]string{"prod": ""}, "it does not exist"},
		"deleted":              {"prod", map[string]string{"prod": deleted}, "Cluster.cluster.x-k8s.io fleet/prod is being deleted"},
		"paused":               {"prod", map[string]string{"prod-cp": "status: {conditions: [{type: Paused, status: 'True'}]}"}, "KubeadmControlPlane.controlplane.cluster.x-k8s.io fleet/prod-cp is paused"},
		"unseen spec":          {"prod", map[string]string{"prod": "metadata: {generation: 5}"}, "fleet/prod: the status is for generation 4, but the spec has generation 5"},
		"unseen by topology":   {"prod", map[string]string{"prod": "{metadata: {generation: 5}, status: {observedGeneration: 5}}"}, "condition TopologyReconciled is for generation 4, but the spec has generation 5"},
		"upgrading":            {"prod", map[string]string{"prod": "status: {conditions: [{type: Available, status: 'True'}, {type: TopologyReconciled, status: 'False', reason: ClusterUpgrading, message: \"a\\n  b\"}]}"}, "TopologyReconciled is False (ClusterUpgrading): a b"},
		"unavailable":          {"prod", map[string]string{"prod": "status: {conditions: [{type: Available, status: 'False'}]}"}, "Available is False"},
		"never reported":       {"prod", map[string]string{"prod": "status: null"}, "has no condition Available yet"},
		"no control plane":     {"prod", map[string]string{"prod-cp": ""}, "fleet/prod has no control plane yet prod-cp"},
		"old control plane":    {"prod", map[string]string{"prod-cp": "spec: {version: v1.36.0}"}, "its spec still has version v1.36.0, the Cluster wants v1.36.1"},
		"old workers":          {"prod", map[string]string{"prod-md": "spec: {template: {spec: {version: v1.36.0}}}"}, "MachineDeployment.cluster.x-k8s.io fleet/prod-md: its spec still has version v1.36.0, the Cluster wants v1.36.1"},
		"a machine goes":       {"prod", map[string]string{"worker-1": deleted}, "Machine.cluster.x-k8s.io fleet/worker-1 is being deleted"},
		"workers going":        {"prod", map[string]string{"prod-md": deleted}, "fleet/prod-md is being deleted"},
		"control plane lags":   {"prod-cp", map[string]string{"prod-cp": "metadata: {generation: 3}"}, "the status is for generation 2, but the spec has generation 3"},
		"old machine":          {"prod-cp", map[string]string{"cp-1": "spec: {version: v1.36.0}"}, "fleet/cp-1 has version v1.36.0, not v1.36.1"},
		"old version reported": {"prod-cp", map[string]string{"prod-cp": "status: {versions: [{version: v1.36.0}, {version: v1.36.1}]}"}, "its status reports version v1.36.0, but its spec has version v1.36.1"},
		"version unreported":   {"prod-cp", map[string]string{"prod-cp": "{spec: {replicas: null}, status: {versions: null}}", "cp-1": ""}, "its status reports no version yet"},
		"rolling out":          {"prod-cp", map[string]string{"prod-cp": "status: {conditions: [{type: RollingOut, status: 'True', message: 'Rolling out 1'}]}"}, "RollingOut: Rolling out 1"},
		"counts":               {"prod-cp", map[string]string{"prod-cp": "status: {replicas: 2, upToDateReplicas: null}"}, "1 replicas desired; replicas 2, readyReplicas 1, availableReplicas 1, upToDateReplicas not reported; 1 Machines"},
		"an uncounted machine": {"prod-md", map[string]string{"cp-1": "metadata: {ownerReferences: [{kind: MachineSet, uid: so, controller: true}]}"}, "fleet/old has an older template and 1 machines"},
		"old template":         {"prod-md", map[string]string{"prod-md": "spec: {template: {spec: {infrastructureRef: {name: large}}}}"}, "fleet/new has an older template and 1 machines"},
		"two MachineSets":      {"prod-md", map[string]string{"old": "spec: {replicas: 1, template: {spec: {version: v1.36.1}}}"}, "fleet/prod-md: 2 MachineSets have machines"},
		"no MachineSet":        {"prod-md", map[string]string{"new": ""}, "fleet/prod-md: no MachineSet has machines yet"},
		"MachineSet lags":      {"prod-md", map[string]string{"new": "metadata: {generation: 2}"}, "fleet/new: the status is for generation 1, but the spec has generation 2"},
		"MachineSet counts":    {"new", map[string]string{"new": "spec: {replicas: 3}"}, "3 replicas desired"},
	} {
		t.Run(name, func(t *testing.T) {
			if why := problemsOf(t, c.object, c.patches); !strings.Contains(why, c.says) {
				t.Errorf("Missing = %q, want %q in it", why, c.says)
			}
		})
	}
}

// TestSettledByContract checks that fields are not required that a control plane of another provider, a MachinePool or
// a MachineSet without an owner does not report.
func TestSettledByContract(t *testing.T) {
	for name, c := range map[string]struct {
		object  string
		patches map[string]string
	}{
		"managed control plane": {"prod-cp", map[string]string{
			"prod-cp": "{kind: ManagedControlPlane, spec: {replicas: null}, status: {replicas: null, version: v1.36.1-gke.7, versions: null}}", "cp-1": "metadata: {ownerReferences: null}",
		}},
		"MachineSet without an owner": {"new", map[string]string{"new": "{metadata: {ownerReferences: null}, status: {upToDateReplicas: 0}}", "worker-1": "spec: {version: v1.36.0}"}},
		"MachinePool":                 {"prod-md", map[string]string{"prod-md": "{kind: MachinePool, status: {upToDateReplicas: null}}"}},
		"no replicas":                 {"prod-md", map[string]string{"prod-md": "{spec: {replicas: 0}, status: {replicas: 0, readyReplicas: 0, availableReplicas: 0, upToDateReplicas: 0}}", "new": "", "worker-1": ""}},
	} {
		if why := problemsOf(t, c.object, c.patches); why != "" {
			t.Errorf("%s: Missing = %s, want none", name, why)
		}
	}
}

func TestJudges(t *testing.T) {
	for kind, want := range map[string]bool{
		"Cluster.cluster.x-k8s.io": true, "MachineDeployment.cluster.x-k8s.io": true, "MachineSet.cluster.x-k8s.io": true, "MachinePool.cluster.x-k8s.io": true,
		"KubeadmControlPlane.controlplane.cluster.x-k8s.io": true, "KubeadmControlPlaneTemplate.controlplane.cluster.x-k8s.io": false,
		"Machine.cluster.x-k8s.io": false, "Deployment.apps": false, "Cluster.postgresql.cnpg.io": false,
	} {
		if got := settled.Supports(schema.ParseGroupKind(kind)); got != want {
			t.Errorf("Supports(%s) = %v, want %v", kind, got, want)
		}
	}
}
