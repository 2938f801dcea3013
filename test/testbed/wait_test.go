package testbed

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestMissingSaysWhy(t *testing.T) {
	available := func() *clusterv1.Cluster {
		return &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Status: clusterv1.ClusterStatus{
				ObservedGeneration: 2,
				Conditions:         []metav1.Condition{{Type: clusterv1.ClusterAvailableCondition, Status: metav1.ConditionTrue}},
				ControlPlane: &clusterv1.ClusterControlPlaneStatus{
					DesiredReplicas: new(int32(1)), Replicas: new(int32(1)), AvailableReplicas: new(int32(1)), UpToDateReplicas: new(int32(1)),
				},
			},
		}
	}
	running := func() clusterv1.Machine {
		m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
		m.Status.Phase = string(clusterv1.MachinePhaseRunning)
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineAvailableCondition, Status: metav1.ConditionTrue}}
		return m
	}
	for name, c := range map[string]struct {
		change func(*clusterv1.Cluster, *clusterv1.Machine)
		want   []string
	}{
		"available": {change: func(*clusterv1.Cluster, *clusterv1.Machine) {}},
		"not available": {
			change: func(c *clusterv1.Cluster, _ *clusterv1.Machine) {
				c.Status.Conditions[0] = metav1.Condition{
					Type: clusterv1.ClusterAvailableCondition, Status: metav1.ConditionFalse, Reason: "NotAvailable", Message: "* first\n  * second",
				}
			},
			want: []string{"Cluster: Available=False NotAvailable: * first * second"},
		},
		"change not seen": {
			change: func(c *clusterv1.Cluster, _ *clusterv1.Machine) { c.Generation = 3 },
			want:   []string{"Cluster: its controller has not seen its latest change"},
		},
		"too few": {
			change: func(c *clusterv1.Cluster, _ *clusterv1.Machine) { c.Status.ControlPlane.AvailableReplicas = nil },
			want:   []string{"Cluster: control plane: 1 wanted, 1 there, -1 available, 1 up to date (-1: not told yet)"},
		},
		"paused": {
			change: func(c *clusterv1.Cluster, m *clusterv1.Machine) {
				paused := metav1.Condition{Type: clusterv1.PausedCondition, Status: metav1.ConditionTrue}
				c.Status.Conditions = append(c.Status.Conditions, paused)
				m.Status.Conditions = append(m.Status.Conditions, paused)
			},
			want: []string{"Cluster: paused", "Machine m: paused"},
		},
		"machine missing": {
			change: func(c *clusterv1.Cluster, _ *clusterv1.Machine) {
				one := new(int32(1))
				c.Status.Workers = &clusterv1.WorkersStatus{DesiredReplicas: one, Replicas: one, AvailableReplicas: one, UpToDateReplicas: one}
			},
			want: []string{"Cluster: 2 machines wanted, 1 exist"},
		},
		"machine on its way": {
			change: func(_ *clusterv1.Cluster, m *clusterv1.Machine) { m.Status = clusterv1.MachineStatus{Phase: "Pending"} },
			want:   []string{"Machine m: phase Pending", "Machine m: no condition Available", "Machine m: no condition Ready"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, machine := available(), running()
			c.change(cluster, &machine)
			if diff := cmp.Diff(c.want, missing(cluster, []clusterv1.Machine{machine})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
