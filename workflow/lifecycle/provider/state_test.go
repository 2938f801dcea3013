package provider

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"scute.dev/kube/settled"
	"scute.dev/workflow/task"
)

const version = "v1.36.1"

// upgraded returns a cluster that has reached the version: the test data of package settled.
func upgraded(t *testing.T) settled.State {
	t.Helper()
	content, err := os.ReadFile("../../../kube/settled/testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var s settled.State
	for _, document := range bytes.Split(content, []byte("\n---\n")) {
		document, err := yaml.YAMLToJSON(document)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(document); err != nil {
			t.Fatal(err)
		}
		switch u.GetKind() {
		case "Cluster":
			s.Object = u
		case "KubeadmControlPlane":
			s.ControlPlane = u
		default:
			s.Members = append(s.Members, u)
		}
	}
	return s
}

// TestOutdated checks that each sign of an incomplete upgrade is reported. The reports of settled.State are tested
// there.
func TestOutdated(t *testing.T) {
	if why := outdatedReasons(upgraded(t), version); len(why) > 0 {
		t.Fatalf("outdated for an upgraded cluster = %v, want none", why)
	}
	conditions := func(s settled.State) []any {
		list, _, _ := unstructured.NestedSlice(s.ControlPlane.Object, "status", "conditions")
		return list
	}
	for says, change := range map[string]func(*settled.State){
		"it does not exist": func(s *settled.State) { s.Object = nil },
		"fleet/prod: the status is for generation 4, but the spec has generation 5": func(s *settled.State) { s.Object.SetGeneration(5) },
		"Machine worker-1 has version v1.36.0": func(s *settled.State) {
			set(t, machines(*s)[1], "v1.36.0", "spec", "version")
		},
		"the spec of the control plane has version v1.36.0": func(s *settled.State) { set(t, s.ControlPlane, "v1.36.0", "spec", "version") },
		"fleet/prod-cp has no condition EtcdClusterHealthy yet": func(s *settled.State) {
			set(t, s.ControlPlane, conditions(*s)[:2], "status", "conditions")
		},
		"fleet/prod-cp has no condition ControlPlaneComponentsHealthy yet": func(s *settled.State) {
			set(t, s.ControlPlane, conditions(*s)[:1], "status", "conditions")
		},
	} {
		s := upgraded(t)
		change(&s)
		if why := strings.Join(outdatedReasons(s, version), "; "); !strings.Contains(why, says) {
			t.Errorf("outdated = %q, want %q in it", why, says)
		}
	}
	external := upgraded(t)
	set(t, external.ControlPlane, []any{"https://etcd.example:2379"}, "spec", "kubeadmConfigSpec", "clusterConfiguration", "etcd", "external", "endpoints")
	set(t, external.ControlPlane, conditions(external)[:2], "status", "conditions")
	if why := outdatedReasons(external, version); len(why) > 0 {
		t.Errorf("outdated with an external etcd = %v, want none", why)
	}
}

func set(t *testing.T, u *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

// TestBeyond checks that an upgrade fails if any part of the cluster has a newer version than its target.
func TestBeyond(t *testing.T) {
	spec := Cluster{Namespace: "fleet", Name: "prod", Version: version}
	if err := checkUpgradePossible(upgraded(t), spec); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*settled.State){
		"topology":      func(s *settled.State) { set(t, s.Object, "v1.36.2", "spec", "topology", "version") },
		"control plane": func(s *settled.State) { set(t, s.ControlPlane, "v1.37.0+vendor", "spec", "version") },
		"workers":       func(s *settled.State) { set(t, workers(*s)[0], "v1.37.0", "spec", "template", "spec", "version") },
	} {
		s := upgraded(t)
		change(&s)
		if err := checkUpgradePossible(s, spec); !task.IsFinal(err) || !strings.Contains(err.Error(), "Kubernetes cannot be downgraded to v1.36.1") {
			t.Errorf("%s: beyond = %v, want a final error", name, err)
		}
	}
	s := upgraded(t)
	s.Object = nil
	if err := checkUpgradePossible(s, spec); !task.IsFinal(err) {
		t.Errorf("beyond for a deleted cluster = %v, want a final error", err)
	}
}

// TestSized checks that an upgrade without numbers of machines uses those of the cluster.
func TestSized(t *testing.T) {
	s := upgraded(t)
	set(t, s.ControlPlane, int64(3), "spec", "replicas")
	set(t, workers(s)[0], int64(0), "spec", "replicas")
	if spec := withReplicas(s, Cluster{}); *spec.ControlPlaneReplicas != 3 || *spec.WorkerReplicas != 0 {
		t.Errorf("replicas = %d and %d, want those of the cluster", *spec.ControlPlaneReplicas, *spec.WorkerReplicas)
	}
	if spec := withReplicas(s, Cluster{ControlPlaneReplicas: new(1), WorkerReplicas: new(2)}); *spec.ControlPlaneReplicas != 1 || *spec.WorkerReplicas != 2 {
		t.Errorf("replicas = %d and %d, want those of the parameters", *spec.ControlPlaneReplicas, *spec.WorkerReplicas)
	}
	other := workers(s)[0].DeepCopy()
	set(t, other, int64(2), "spec", "replicas")
	s.Members = append(s.Members, other)
	if spec := withReplicas(s, Cluster{}); spec.WorkerReplicas != nil {
		t.Errorf("worker replicas = %d for groups of 0 and 2, want none", *spec.WorkerReplicas)
	}
	s.ControlPlane = nil
	if spec := withReplicas(s, Cluster{}); spec.ControlPlaneReplicas != nil {
		t.Error("control plane replicas without a control plane, want none")
	}
}
