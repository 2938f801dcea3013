package testbed

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const pollInterval = 200 * time.Millisecond

// brokenAfter is the age from which a machine without its objects counts as broken.
const brokenAfter = time.Minute

// WaitAvailable waits until the cluster is Available and all its machines run, unpaused and in the desired number. It
// returns an error with what is missing when ctx ends.
func (s *Side) WaitAvailable(ctx context.Context, namespace, name string) error {
	return s.waitFor(ctx, fmt.Sprintf("cluster %s/%s to be available on %s", namespace, name, s.name), func(ctx context.Context) ([]string, error) {
		if err := s.deleteBroken(ctx, namespace, name); err != nil {
			return nil, err
		}
		return s.Missing(ctx, namespace, name)
	})
}

// deleteBroken deletes machines that have neither infrastructure nor a bootstrap configuration. On a busy computer the
// controller of MachineSets may assume that it failed to create a Machine, and delete both; they would never be created
// again.
func (s *Side) deleteBroken(ctx context.Context, namespace, name string) error {
	machines := &clusterv1.MachineList{}
	if err := s.client.List(ctx, machines, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
		return err
	}
	lacks := func(m *clusterv1.Machine, condition, reason string) bool {
		return conditions.GetReason(m, condition) == reason
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		if lacks(m, clusterv1.MachineInfrastructureReadyCondition, clusterv1.MachineInfrastructureDoesNotExistReason) &&
			lacks(m, clusterv1.MachineBootstrapConfigReadyCondition, clusterv1.MachineBootstrapConfigDoesNotExistReason) && time.Since(m.CreationTimestamp.Time) > brokenAfter {
			if err := client.IgnoreNotFound(s.client.Delete(ctx, m, client.Preconditions{UID: &m.UID})); err != nil {
				return err
			}
		}
	}
	return nil
}

// Missing returns why the cluster is not available, in the sense of WaitAvailable, or nothing if it is.
func (s *Side) Missing(ctx context.Context, namespace, name string) ([]string, error) {
	cluster := &clusterv1.Cluster{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cluster); err != nil {
		return nil, err
	}
	machines := &clusterv1.MachineList{}
	if err := s.client.List(ctx, machines, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
		return nil, err
	}
	return missing(cluster, machines.Items), nil
}

// WaitGone waits until the cluster does not exist on this side. It returns an error when ctx ends.
func (s *Side) WaitGone(ctx context.Context, namespace, name string) error {
	return s.waitFor(ctx, fmt.Sprintf("cluster %s/%s to be gone from %s", namespace, name, s.name), func(ctx context.Context) ([]string, error) {
		cluster := &clusterv1.Cluster{}
		err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cluster)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if cluster.DeletionTimestamp.IsZero() {
			return []string{"it is not being deleted"}, nil
		}
		reasons := []string{fmt.Sprintf("finalizers %v", cluster.Finalizers)}
		return append(reasons, untrue("Cluster", cluster, clusterv1.ClusterDeletingCondition)...), nil
	})
}

// waitFor polls until check reports nothing missing.
func (s *Side) waitFor(ctx context.Context, what string, check func(context.Context) ([]string, error)) error {
	started := time.Now()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var reasons []string
	for {
		found, err := check(ctx)
		switch {
		case err == nil && len(found) == 0:
			return nil
		case err == nil:
			reasons = found
		case ctx.Err() == nil: // otherwise the reasons of the last poll are more useful
			reasons = []string{err.Error()}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w after %s: %s (logs: %s)",
				what, ctx.Err(), time.Since(started).Round(time.Second), strings.Join(reasons, "; "), s.dir)
		}
	}
}

// missing returns why the cluster is not available yet, or nothing if it is.
func missing(cluster *clusterv1.Cluster, machines []clusterv1.Machine) []string {
	var reasons []string
	if !conditions.IsTrue(cluster, clusterv1.ClusterAvailableCondition) {
		reasons = append(reasons, untrue("Cluster", cluster, clusterv1.ClusterAvailableCondition)...)
	}
	if cluster.Status.ObservedGeneration < cluster.Generation {
		reasons = append(reasons, "Cluster: its controller has not seen its latest change")
	}
	if conditions.IsTrue(cluster, clusterv1.PausedCondition) {
		reasons = append(reasons, "Cluster: paused")
	}
	if r := cluster.Status.ControlPlane; r == nil {
		reasons = append(reasons, "Cluster: no control plane yet")
	} else {
		reasons = append(reasons, count("control plane", r.DesiredReplicas, r.Replicas, r.AvailableReplicas, r.UpToDateReplicas)...)
	}
	if r := cluster.Status.Workers; r != nil {
		reasons = append(reasons, count("workers", r.DesiredReplicas, r.Replicas, r.AvailableReplicas, r.UpToDateReplicas)...)
	}
	// Machines are created and deleted before the counts change.
	if want, have := desired(cluster), len(machines); want != have {
		reasons = append(reasons, fmt.Sprintf("Cluster: %d machines wanted, %d exist", want, have))
	}
	slices.SortFunc(machines, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	for i := range machines {
		m := &machines[i]
		if !m.DeletionTimestamp.IsZero() || m.Status.Phase != string(clusterv1.MachinePhaseRunning) || !conditions.IsTrue(m, clusterv1.MachineAvailableCondition) {
			reasons = append(reasons, fmt.Sprintf("Machine %s: phase %s", m.Name, m.Status.Phase))
			reasons = append(reasons, untrue("Machine "+m.Name, m, clusterv1.MachineAvailableCondition, clusterv1.MachineReadyCondition)...)
		}
		if conditions.IsTrue(m, clusterv1.PausedCondition) {
			reasons = append(reasons, fmt.Sprintf("Machine %s: paused", m.Name))
		}
	}
	return reasons
}

// desired returns the number of machines that the Cluster's status requests.
func desired(cluster *clusterv1.Cluster) int {
	n := int32(0)
	if r := cluster.Status.ControlPlane; r != nil && r.DesiredReplicas != nil {
		n += *r.DesiredReplicas
	}
	if r := cluster.Status.Workers; r != nil && r.DesiredReplicas != nil {
		n += *r.DesiredReplicas
	}
	return int(n)
}

func count(what string, desired, have, available, upToDate *int32) []string {
	value := func(n *int32) int32 {
		if n == nil {
			return -1
		}
		return *n
	}
	if want := value(desired); want >= 0 && value(have) == want && value(available) == want && value(upToDate) == want {
		return nil
	}
	return []string{fmt.Sprintf("Cluster: %s: %d wanted, %d there, %d available, %d up to date (-1: not told yet)",
		what, value(desired), value(have), value(available), value(upToDate))}
}

// untrue returns those of the conditions that are not True, with their reasons.
func untrue(name string, object conditions.Getter, types ...string) []string {
	var reasons []string
	for _, t := range types {
		condition := conditions.Get(object, t)
		switch {
		case condition == nil:
			reasons = append(reasons, fmt.Sprintf("%s: no condition %s", name, t))
		case condition.Status != metav1.ConditionTrue || t == clusterv1.ClusterDeletingCondition:
			reasons = append(reasons, fmt.Sprintf("%s: %s=%s %s: %s", name, t, condition.Status, condition.Reason,
				strings.Join(strings.Fields(condition.Message), " ")))
		}
	}
	return reasons
}
