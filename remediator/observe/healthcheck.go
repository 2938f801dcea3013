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

// TemplateKind is the kind of the remediation template by which a MachineHealthCheck requests remediations from scute.
const TemplateKind = "SurgeRemediationTemplate"

// AsksScute reports whether a MachineHealthCheck requests remediations from scute.
func AsksScute(c *clusterv1.MachineHealthCheck) bool {
	ref := c.Spec.Remediation.TemplateRef
	return ref.Kind == TemplateKind && ref.GroupVersionKind().Group == v1alpha1.GroupVersion().Group
}

// Unwired reports whether a MachineHealthCheck remediates machines of a cluster without scute: it does not request them from scute, is not
// paused, and its limit permits remediations. A MachineHealthCheck whose limit is 0 only reports.
func Unwired(c *clusterv1.MachineHealthCheck, cluster string) bool {
	trigger := c.Spec.Remediation.TriggerIf
	never := trigger.UnhealthyInRange == "" && trigger.UnhealthyLessThanOrEqualTo != nil && trigger.UnhealthyLessThanOrEqualTo.IntValue() == 0 &&
		(trigger.UnhealthyLessThanOrEqualTo.StrVal == "" || trigger.UnhealthyLessThanOrEqualTo.StrVal == "0%")
	return c.Spec.ClusterName == cluster && c.DeletionTimestamp.IsZero() && !paused(c) && !never && !AsksScute(c)
}

// Selector returns the selector of a MachineHealthCheck's machines. An invalid selector selects nothing.
func Selector(c *clusterv1.MachineHealthCheck) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(&c.Spec.Selector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// healthChecks sets Unwired for machines that a MachineHealthCheck remediates without scute, and Passed for machines of a MachineHealthCheck that
// requests remediations from scute.
func (l *look) healthChecks(ctx context.Context) error {
	if l.facts.Policy.Name == "" {
		return nil
	}
	list := &clusterv1.MachineHealthCheckList{}
	err := l.observer.cache.List(ctx, list, l.in(), client.UnsafeDisableDeepCopy)
	if err != nil && !absent(err) {
		return fmt.Errorf("listing MachineHealthChecks: %w", err)
	}
	l.unwired(list.Items)
	l.passed(list.Items)
	return nil
}

func (l *look) passed(checks []clusterv1.MachineHealthCheck) {
	for i := range checks {
		c := &checks[i]
		if c.Spec.ClusterName != l.facts.Owner.Cluster || !AsksScute(c) {
			continue
		}
		selector, all := Selector(c), object.False
		if healthy, expected := c.Status.CurrentHealthy, c.Status.ExpectedMachines; c.Status.ObservedGeneration == c.Generation && healthy != nil && expected != nil && *healthy == *expected {
			all = object.True
		}
		for j, m := range l.found {
			if f := &l.facts.Machines[j]; f.Passed != object.False && selector.Matches(labels.Set(m.Labels)) {
				f.Passed = all
			}
		}
	}
}

func (l *look) unwired(checks []clusterv1.MachineHealthCheck) {
	for i := range checks {
		if !Unwired(&checks[i], l.facts.Owner.Cluster) {
			continue
		}
		selector := Selector(&checks[i])
		for j, m := range l.found {
			if f := &l.facts.Machines[j]; f.Unwired == "" && selector.Matches(labels.Set(m.Labels)) {
				f.Unwired = checks[i].Name
			}
		}
	}
}
