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

// contracts are the statuses of three replicas that are all well, of which Cluster API's contracts name the same counts differently.
func contracts() map[string]map[string]any {
	return map[string]map[string]any{
		"v1beta1": {"replicas": int64(3), "readyReplicas": int64(3), "updatedReplicas": int64(3), "unavailableReplicas": int64(0)},
		// A count of 0 is left out of JSON where the provider says omitempty.
		"v1beta1, none unavailable": {"replicas": int64(3), "readyReplicas": int64(3), "updatedReplicas": int64(3)},
		"v1beta1 of the core":       {"replicas": int64(3), "readyReplicas": int64(3), "updatedReplicas": int64(3), "availableReplicas": int64(3)},
		"v1beta2":                   {"replicas": int64(3), "readyReplicas": int64(3), "upToDateReplicas": int64(3), "availableReplicas": int64(3)},
	}
}

// controlPlanes and workers are the kinds that have replicas.
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

// rolledOut is an object of a kind with a status, the Cluster that it is the control plane of, if it is one, and its machines.
func rolledOut(kind string, status map[string]any) settled.State {
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

// TestContracts: an object of either contract is settled if all its replicas are well, and is not if a count that its contract has
// differs, or is absent. Only unavailableReplicas may be absent.
func TestContracts(t *testing.T) {
	for _, kind := range slices.Concat(controlPlanes(), workers()) {
		for contract, status := range contracts() {
			if strings.Contains(kind, "MachinePool") && contract == "v1beta1" {
				continue // its availableReplicas is in either version
			}
			if why := rolledOut(kind, status).Missing(); len(why) > 0 {
				t.Errorf("%s, %s: %q", kind, contract, why)
			}
			for field := range status {
				off, gone := with(status, field, int64(2)), with(status, field, nil)
				pool := strings.Contains(kind, "MachinePool") && (field == "updatedReplicas" || field == "upToDateReplicas")
				if why := rolledOut(kind, off).Missing(); len(why) == 0 && !pool {
					t.Errorf("%s, %s: settled with %s 2", kind, contract, field)
				}
				if why := rolledOut(kind, gone).Missing(); len(why) == 0 && !pool && field != "unavailableReplicas" && contract != "v1beta1 of the core" {
					t.Errorf("%s, %s: settled without %s", kind, contract, field)
				}
			}
		}
	}
}

// TestConditionsOfContracts: the conditions of v1beta2 are where an API of the older contract keeps them, and the older ones of the
// same name beside them do not count.
func TestConditionsOfContracts(t *testing.T) {
	for _, kind := range controlPlanes() {
		s := rolledOut(kind, contracts()["v1beta1"])
		status := s.Object.Object["status"].(map[string]any)
		status["conditions"] = []any{map[string]any{"type": "Available", "status": "True"}}
		if why := s.Missing(); len(why) > 0 {
			t.Errorf("%s: %q", kind, why)
		}
		status["v1beta2"] = map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "False"}}}
		if why := s.Missing(); len(why) == 0 {
			t.Errorf("%s: settled though it is not Available", kind)
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

// TestContractsAreNotMixed: a status with upToDateReplicas is of v1beta2, so its availableReplicas is not computed from the counts of v1beta1.
func TestContractsAreNotMixed(t *testing.T) {
	status := with(contracts()["v1beta1"], "upToDateReplicas", int64(3))
	for _, kind := range controlPlanes() {
		if why := rolledOut(kind, status).Missing(); len(why) == 0 {
			t.Errorf("%s: settled without availableReplicas", kind)
		}
	}
}
