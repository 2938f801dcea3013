package act

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/remediator"
)

// handOver sets the two conditions of the Machine that make its owner remediate it, by deleting it
// first. Owners of the supported versions do not act on the conditions of the v1beta1 contract.
func (d *execution) handOver(ctx context.Context) error {
	if _, err := d.kind(); err != nil {
		return err
	}
	return d.updateMachine(ctx, d.patchStatus, true, func(m *clusterv1.Machine) error {
		if isUnhealthy(m) && hasCondition(m, clusterv1.MachineOwnerRemediatedCondition, metav1.ConditionFalse) {
			return nil
		}
		if err := d.checkAllowed(ctx, m); err != nil {
			return err
		}
		if err := d.checkNoneDeleting(ctx, m); err != nil {
			return err
		}
		setUnhealthy(m)
		if !hasCondition(m, clusterv1.MachineOwnerRemediatedCondition, metav1.ConditionFalse) { // with another reason, the owner has started
			meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
				Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, ObservedGeneration: m.Generation,
				Reason: clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, Message: "Waiting for remediation",
			})
		}
		return nil
	})
}

// report sets the Machine's condition that informs its owner that it is unhealthy. It does not
// request a remediation.
func (d *execution) report(ctx context.Context) error {
	return d.updateMachine(ctx, d.patchStatus, true, func(m *clusterv1.Machine) error {
		if isUnhealthy(m) {
			return nil
		}
		if err := d.checkAllowed(ctx, m); err != nil {
			return err
		}
		setUnhealthy(m)
		return nil
	})
}

func setUnhealthy(m *clusterv1.Machine) {
	if isUnhealthy(m) {
		return
	}
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse, ObservedGeneration: m.Generation,
		Reason: remediator.HandOverReason, Message: "The machine is unhealthy; its annotation scute.dev/unhealthy has the reason",
	})
}

// checkNoneDeleting returns an error if another machine of the control plane is being deleted,
// which the decision did not take into account. The owner would delete m right after that machine,
// without a replacement for either.
func (d *execution) checkNoneDeleting(ctx context.Context, m *clusterv1.Machine) error {
	if !util.IsControlPlaneMachine(m) {
		return nil
	}
	machines := &clusterv1.MachineList{}
	err := call(ctx, "listing the machines of the control plane", func(ctx context.Context) error {
		return d.Client.List(ctx, machines, client.InNamespace(m.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: m.Spec.ClusterName},
			client.HasLabels{clusterv1.MachineControlPlaneLabel})
	})
	if err != nil {
		return err
	}
	for i := range machines.Items {
		if other := &machines.Items[i]; other.UID != m.UID && other.DeletionTimestamp != nil {
			return preconditionFailed("machine %s of the control plane is being deleted", other.Name)
		}
	}
	return nil
}

// withdraw removes the Machine's condition OwnerRemediated, unless the Machine is being deleted. It
// does not change the condition that it is unhealthy.
func (d *execution) withdraw(ctx context.Context) error {
	return d.updateMachine(ctx, d.patchStatus, false, func(m *clusterv1.Machine) error {
		if m.DeletionTimestamp == nil {
			meta.RemoveStatusCondition(&m.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
		}
		return nil
	})
}

// setHealthy sets the Machine's conditions to the values that a MachineHealthCheck sets for a
// healthy machine. It also sets the v1beta1 conditions, which owners write and nothing else would
// reset.
func (d *execution) setHealthy(ctx context.Context) error {
	return d.updateMachine(ctx, d.patchStatus, false, func(m *clusterv1.Machine) error {
		meta.RemoveStatusCondition(&m.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
		meta.RemoveStatusCondition(&m.Status.Conditions, clusterv1.MachineExternallyRemediatedCondition)
		if !hasCondition(m, clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionTrue) {
			meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
				Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionTrue, ObservedGeneration: m.Generation,
				Reason: clusterv1.MachineHealthCheckSucceededReason,
			})
		}
		setHealthyV1Beta1(m)
		return nil
	})
}

func setHealthyV1Beta1(m *clusterv1.Machine) {
	older := slices.DeleteFunc(m.GetV1Beta1Conditions(), func(c clusterv1.Condition) bool { //nolint:staticcheck // deprecated, but still read by tools
		return c.Type == clusterv1.MachineOwnerRemediatedV1Beta1Condition
	})
	for i := range older {
		if c := &older[i]; c.Type == clusterv1.MachineHealthCheckSucceededV1Beta1Condition && c.Status != "True" {
			*c = clusterv1.Condition{Type: c.Type, Status: "True", LastTransitionTime: metav1.Now().Rfc3339Copy()} //nolint:staticcheck // as above
		}
	}
	if m.GetV1Beta1Conditions() != nil {
		m.SetV1Beta1Conditions(older)
	}
}

func isUnhealthy(m *clusterv1.Machine) bool {
	return hasCondition(m, clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionFalse)
}

func hasCondition(m *clusterv1.Machine, condition string, status metav1.ConditionStatus) bool {
	return meta.IsStatusConditionPresentAndEqual(m.Status.Conditions, condition, status)
}
