package observe

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
)

// TemplateKind is the kind of the remediation template with which a MachineHealthCheck requests
// remediations from scute.
const TemplateKind = "SurgeRemediationTemplate"

// UsesScute reports whether a MachineHealthCheck requests remediations from scute.
func UsesScute(c *clusterv1.MachineHealthCheck) bool {
	ref := c.Spec.Remediation.TemplateRef
	return ref.Kind == TemplateKind && ref.GroupVersionKind().Group == v1alpha1.GroupVersion().Group
}

// RemediatesDirectly reports whether a MachineHealthCheck remediates machines of a cluster without
// scute. It returns false for a MachineHealthCheck that is paused or whose limit is 0, which only
// reports.
func RemediatesDirectly(c *clusterv1.MachineHealthCheck, cluster string) bool {
	trigger := c.Spec.Remediation.TriggerIf
	never := trigger.UnhealthyInRange == "" && trigger.UnhealthyLessThanOrEqualTo != nil && trigger.UnhealthyLessThanOrEqualTo.IntValue() == 0 &&
		(trigger.UnhealthyLessThanOrEqualTo.StrVal == "" || trigger.UnhealthyLessThanOrEqualTo.StrVal == "0%")
	return c.Spec.ClusterName == cluster && c.DeletionTimestamp.IsZero() && !paused(c) && !never && !UsesScute(c)
}

// Selector returns the selector of a MachineHealthCheck's machines. An invalid selector selects nothing.
func Selector(c *clusterv1.MachineHealthCheck) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(&c.Spec.Selector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// healthChecks sets OtherHealthCheck of machines that a MachineHealthCheck remediates without
// scute, and HealthChecksPass of machines whose MachineHealthCheck requests remediations from
// scute.
func (l *observation) healthChecks(ctx context.Context) error {
	if l.facts.Policy.Name == "" {
		return nil
	}
	list := &clusterv1.MachineHealthCheckList{}
	err := l.observer.cache.List(ctx, list, l.inNamespace(), client.UnsafeDisableDeepCopy)
	if err != nil && !absent(err) {
		return fmt.Errorf("listing MachineHealthChecks: %w", err)
	}
	l.setHealthChecks(list.Items)
	return nil
}

func (l *observation) setHealthChecks(checks []clusterv1.MachineHealthCheck) {
	for i := range checks {
		c := &checks[i]
		wired := c.Spec.ClusterName == l.facts.Owner.Cluster && UsesScute(c)
		if !wired && !RemediatesDirectly(c, l.facts.Owner.Cluster) {
			continue
		}
		all := object.False
		if healthy, expected := c.Status.CurrentHealthy, c.Status.ExpectedMachines; c.Status.ObservedGeneration == c.Generation && healthy != nil && expected != nil && *healthy == *expected {
			all = object.True
		}
		selector := Selector(c)
		for j, m := range l.found {
			f := &l.facts.Machines[j]
			switch {
			case !selector.Matches(labels.Set(m.Labels)):
			case wired && f.HealthChecksPass != object.False:
				f.HealthChecksPass = all
			case !wired && f.OtherHealthCheck == "":
				f.OtherHealthCheck = c.Name
			}
		}
	}
}
