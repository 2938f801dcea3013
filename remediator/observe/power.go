package observe

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// power asks the infrastructure machines of marked machines whose Nodes are not Ready whether they are off, where the policy wants to
// know.
func (l *look) power(ctx context.Context) error {
	if len(l.facts.Policy.Off) == 0 {
		return nil
	}
	for i := range l.facts.Machines {
		m := &l.facts.Machines[i]
		if m.Mark == "" && m.OutOfService == "" || m.Conditions[clusterv1.MachineNodeReadyCondition].Status == object.True {
			continue
		}
		if err := l.observer.off(ctx, l.found[i], l.facts.Policy, m); err != nil {
			return fmt.Errorf("asking whether machine %s is off: %w", m.Name, err)
		}
	}
	return nil
}

// off is Unknown where the infrastructure machine cannot be had.
func (o *Observer) off(ctx context.Context, of *clusterv1.Machine, policy remediator.Policy, m *remediator.Machine) error {
	m.Off = object.Unknown
	ref := of.Spec.InfrastructureRef
	mapping, err := o.live.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
	if err != nil {
		return refused(err)
	}
	infra := &unstructured.Unstructured{}
	infra.SetGroupVersionKind(mapping.GroupVersionKind)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := o.live.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: ref.Name}, infra); err != nil {
		return refused(err)
	}
	m.Off = object.False
	if m.OffBy, m.OffSince = policy.SaysOff(object.Conditions(infra)); m.OffBy != "" {
		m.Off = object.True
	}
	return nil
}
