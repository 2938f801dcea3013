package cluster

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const version = "v1.36.1"

// upgraded is a cluster that is safely at the version.
func upgraded() *state {
	one := int32(1)
	yes := func(types ...string) (conditions []metav1.Condition) {
		for _, t := range types {
			conditions = append(conditions, metav1.Condition{Type: t, Status: metav1.ConditionTrue})
		}
		return conditions
	}
	s := &state{cluster: &clusterv1.Cluster{}, controlPlane: &controlplanev1.KubeadmControlPlane{}}
	s.cluster.Status.Conditions = yes(clusterv1.ClusterAvailableCondition)
	s.cluster.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{DesiredReplicas: &one, Replicas: &one, AvailableReplicas: &one, UpToDateReplicas: &one}
	s.controlPlane.Spec.Version = version
	s.controlPlane.Status.Conditions = yes(controlplanev1.KubeadmControlPlaneAvailableCondition,
		controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition, controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition)
	m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	m.Spec.Version, m.Status.Phase = version, string(clusterv1.MachinePhaseRunning)
	s.machines = []clusterv1.Machine{m}
	return s
}

// Each sign of an upgrade that is not through keeps the wait from ending, and says so.
func TestOutdated(t *testing.T) {
	if why := upgraded().outdated(version); len(why) > 0 {
		t.Fatalf("an upgraded cluster: %v", why)
	}
	deleted := metav1.Now()
	for says, change := range map[string]func(*state){
		"no such Cluster":                        func(s *state) { s.cluster = nil },
		"has not seen its latest change":         func(s *state) { s.cluster.Generation = 2 },
		"Available=False":                        func(s *state) { s.cluster.Status.Conditions[0].Status = metav1.ConditionFalse },
		"0 up to date":                           func(s *state) { s.cluster.Status.ControlPlane.UpToDateReplicas = new(int32) },
		"m1 has version v1.36.0":                 func(s *state) { s.machines[0].Spec.Version = "v1.36.0" },
		"m1 is being deleted":                    func(s *state) { s.machines[0].DeletionTimestamp = &deleted },
		"m1: phase Provisioning":                 func(s *state) { s.machines[0].Status.Phase = "Provisioning" },
		"controller has not seen":                func(s *state) { s.controlPlane.Generation = 2 },
		"is to have version v1.36.0":             func(s *state) { s.controlPlane.Spec.Version = "v1.36.0" },
		"EtcdClusterHealthy=Unknown":             func(s *state) { s.controlPlane.Status.Conditions[2].Status = metav1.ConditionUnknown },
		"ControlPlaneComponentsHealthy=False":    func(s *state) { s.controlPlane.Status.Conditions[1].Status = metav1.ConditionFalse },
		"has no condition EtcdClusterHealthy":    func(s *state) { s.controlPlane.Status.Conditions = s.controlPlane.Status.Conditions[:2] },
		"workers: 2 machines wanted, 1 there":    func(s *state) { s.cluster.Status.Workers = workers(2, 1) },
		"workers: -1 machines wanted, -1 there,": func(s *state) { s.cluster.Status.Workers = &clusterv1.WorkersStatus{} },
	} {
		s := upgraded()
		change(s)
		if why := strings.Join(s.outdated(version), "; "); !strings.Contains(why, says) {
			t.Errorf("it says %q, want %q in it", why, says)
		}
	}
	external := upgraded()
	external.controlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints = []string{"https://etcd.example:2379"}
	external.controlPlane.Status.Conditions = external.controlPlane.Status.Conditions[:2]
	if why := external.outdated(version); len(why) > 0 {
		t.Errorf("with an external etcd: %v", why)
	}
}

func workers(desired, have int32) *clusterv1.WorkersStatus {
	return &clusterv1.WorkersStatus{DesiredReplicas: &desired, Replicas: &have, AvailableReplicas: &have, UpToDateReplicas: &have}
}
