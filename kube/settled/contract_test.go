package settled_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/settled"
)

// contracts returns statuses of three healthy replicas, whose counts have different names in Cluster API's contracts.
func contracts() map[string]map[string]any {
	return map[string]map[string]any{
		"v1beta1": {"replicas": int64(3), "readyReplicas": int64(3), "updatedReplicas": int64(3), "unavailableReplicas": int64(0)},
		// A provider with omitempty omits a count of 0.
		"v1beta1, none unavailable": {"replicas": int64(3), "readyReplicas": int64(3), "updatedReplicas": int64(3)},
		"v1beta1 of the core":       {"replicas": int64(3), "readyReplicas": int64(3), "updatedReplicas": int64(3), "availableReplicas": int64(3)},
		"v1beta2":                   {"replicas": int64(3), "readyReplicas": int64(3), "upToDateReplicas": int64(3), "availableReplicas": int64(3)},
	}
}

// controlPlanes and workers return the kinds with replicas.
func controlPlanes() []string {
	return []string{
		"controlplane.cluster.x-k8s.io/v1alpha3 TalosControlPlane", "controlplane.cluster.x-k8s.io/v1beta1 KubeadmControlPlane", "controlplane.cluster.x-k8s.io/v1beta2 KubeadmControlPlane",
	}
}

func workers() []string {
	return []string{
		"cluster.x-k8s.io/v1beta1 MachineDeployment", "cluster.x-k8s.io/v1beta2 MachineDeployment", "cluster.x-k8s.io/v1beta1 MachinePool", "cluster.x-k8s.io/v1beta2 MachinePool",
	}
}

// rolledOutState returns the state of an object of a kind with the given status, and of its machines.
func rolledOutState(kind string, status map[string]any) settled.State {
	apiVersion, kind, _ := strings.Cut(kind, " ")
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "prod", "namespace": "fleet", "uid": "1", "generation": int64(1)},
		"spec":   map[string]any{"replicas": int64(3), "version": "v1.36.0", "template": map[string]any{"spec": map[string]any{"version": "v1.36.0"}}},
		"status": map[string]any{"observedGeneration": int64(1), "version": "v1.36.0"},
	}}
	for field, count := range status {
		_ = unstructured.SetNestedField(u.Object, count, "status", field)
	}
	s := settled.State{Object: u}
	if kind == "MachineDeployment" {
		set := u.DeepCopy()
		set.SetKind("MachineSet")
		set.SetUID("2")
		set.SetOwnerReferences(owner(u))
		s.Members = append(s.Members, set)
		u = set
	}
	if kind != "MachinePool" && kind != "TalosControlPlane" {
		for i := range 3 {
			m := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "spec": map[string]any{"version": "v1.36.0"}}}
			m.SetName(fmt.Sprint("m", i))
			m.SetOwnerReferences(owner(u))
			s.Members = append(s.Members, m)
		}
	}
	return s
}

// TestContracts checks for each contract that an object is settled if all its replicas are healthy, and not if a count
// of its contract differs or is missing. In v1beta1, unavailableReplicas and availableReplicas may be missing.
func TestContracts(t *testing.T) {
	for _, kind := range slices.Concat(controlPlanes(), workers()) {
		for contract, status := range contracts() {
			if strings.Contains(kind, "MachinePool") && contract == "v1beta1" {
				continue // its availableReplicas are in both versions
			}
			if why := rolledOutState(kind, status).Problems(); len(why) > 0 {
				t.Errorf("%s, %s: Missing = %q, want none", kind, contract, why)
			}
			for field := range status {
				off, gone := with(status, field, int64(2)), with(status, field, nil)
				pool := strings.Contains(kind, "MachinePool") && (field == "updatedReplicas" || field == "upToDateReplicas")
				if why := rolledOutState(kind, off).Problems(); len(why) == 0 && !pool {
					t.Errorf("%s, %s: settled with %s 2", kind, contract, field)
				}
				if why := rolledOutState(kind, gone).Problems(); len(why) == 0 && !pool && field != "unavailableReplicas" && contract != "v1beta1 of the core" {
					t.Errorf("%s, %s: settled without %s", kind, contract, field)
				}
			}
		}
	}
}

// TestConditionsOfContracts checks that the conditions of v1beta2 in an API of the older contract count, rather than
// the older conditions with the same names.
func TestConditionsOfContracts(t *testing.T) {
	for _, kind := range controlPlanes() {
		s := rolledOutState(kind, contracts()["v1beta1"])
		status := s.Object.Object["status"].(map[string]any)
		status["conditions"] = []any{map[string]any{"type": "Available", "status": "True"}}
		if why := s.Problems(); len(why) > 0 {
			t.Errorf("%s: Missing = %q, want none", kind, why)
		}
		status["v1beta2"] = map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "False"}}}
		if why := s.Problems(); len(why) == 0 {
			t.Errorf("%s: settled although it is not Available", kind)
		}
	}
}

func owner(u *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), UID: u.GetUID(), Controller: new(true)}}
}

func with(status map[string]any, field string, value any) map[string]any {
	status = maps.Clone(status)
	if delete(status, field); value != nil {
		status[field] = value
	}
	return status
}

// TestContractsAreNotMixed checks that for a status with upToDateReplicas, which is of v1beta2, availableReplicas are
// not computed from the counts of v1beta1.
func TestContractsAreNotMixed(t *testing.T) {
	status := with(contracts()["v1beta1"], "upToDateReplicas", int64(3))
	for _, kind := range controlPlanes() {
		if why := rolledOutState(kind, status).Problems(); len(why) == 0 {
			t.Errorf("%s: settled without availableReplicas", kind)
		}
	}
}
