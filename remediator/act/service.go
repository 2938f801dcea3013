package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
)

// Nodes taints Nodes of workload clusters out-of-service, and takes that taint off again.
type Nodes interface {
	SetOutOfService(ctx context.Context, cluster types.NamespacedName, node, providerID string, out bool) error
}

// tainting is what the annotation says before the Node has its taint, so that a process that ends in between leaves none behind.
const tainting = "tainting"

// outOfService taints the machine's Node, or takes the taint off. The annotation on the Machine is there as long as the taint may be.
func (d *execution) outOfService(ctx context.Context) error {
	if d.Nodes == nil {
		return errors.New("cannot taint nodes: no client for workload clusters configured")
	}
	m, err := d.machine(ctx)
	if err != nil {
		return err
	}
	out := d.Value != ""
	if m == nil {
		return d.whenGone(errGone, out, machineGone)
	}
	if out {
		if err := d.certainlyOff(ctx, m); err != nil {
			return err
		}
		if err := d.markService(ctx, func(have string) string { return cmp.Or(have, tainting) }); err != nil {
			return err
		}
	}
	if err := d.Nodes.SetOutOfService(ctx, d.clusterKey(), m.Status.NodeRef.Name, m.Spec.ProviderID, out); err != nil {
		return err
	}
	return d.markService(ctx, func(string) string { return d.Value })
}

func (d *execution) markService(ctx context.Context, value func(have string) string) error {
	return d.onMachine(ctx, d.Value != "", func(m *clusterv1.Machine) error {
		annotate(m, object.OutOfServiceAnnotation, value(m.Annotations[object.OutOfServiceAnnotation]))
		return nil
	})
}

// certainlyOff reads again that the machine is off, and that it is not excluded from remediation.
func (d *execution) certainlyOff(ctx context.Context, m *clusterv1.Machine) error {
	switch {
	case has(m, clusterv1.MachineSkipRemediationAnnotation):
		return foreign("the machine has the annotation %s", clusterv1.MachineSkipRemediationAnnotation)
	case has(m, clusterv1.PausedAnnotation):
		return foreign("the machine is paused (annotation %s)", clusterv1.PausedAnnotation)
	case m.Status.NodeRef.Name == "" || m.Spec.ProviderID == "":
		return foreign("the machine has no Node, or no provider ID")
	}
	if err := d.allowedByCluster(ctx, nil); err != nil {
		return err
	}
	kind, err := d.infrastructure(m)
	if err != nil {
		return err
	}
	infra := &unstructured.Unstructured{}
	infra.SetGroupVersionKind(kind.GroupVersionKind())
	err = d.get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: kind.Name}, infra)
	switch {
	case apierrors.IsNotFound(err):
		return foreign("the machine's infrastructure machine is gone")
	case err != nil:
		return fmt.Errorf("asking whether the machine is off: %w", err)
	}
	if by, _ := d.facts.Policy.SaysOff(object.Conditions(infra)); by == "" {
		return foreign("the %s %s does not say (any more) that the machine is off", kind.Kind, kind.Name)
	}
	return nil
}
