package remediation

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator/observe"
)

// policyLabel is the label that contains the name of the RepairPolicy that owns an object.
const policyLabel = "scute.dev/policy"

// minNodeStartup is the shortest node startup timeout that a MachineHealthCheck accepts.
const minNodeStartup = 30 * time.Second

func templateName(policy string) string { return "scute-" + policy }

func healthCheckName(controlPlane string) string { return controlPlane + "-scute" }

// maxUnhealthy returns the number of unhealthy machines up to which a MachineHealthCheck requests
// remediation: as many as the control plane can lose without losing its quorum. While a replacement
// is provisioned, it returns one more, because a replacement counts as unhealthy until it has
// joined. It returns at least 1, because the remediator decides whether a single machine can be
// replaced.
func maxUnhealthy(replicas int32, provisioning bool) int32 {
	n := max(1, (replicas-1)/2)
	if provisioning {
		n++
	}
	return n
}

func healthCheckSpec(p *v1alpha1.RepairPolicy, cluster string, most int32) clusterv1.MachineHealthCheckSpec {
	from := observe.Policy(p).Checks // with defaults
	checks := clusterv1.MachineHealthCheckChecks{NodeStartupTimeoutSeconds: startupSeconds(from.NodeStartup)}
	for _, c := range from.Node {
		checks.UnhealthyNodeConditions = append(checks.UnhealthyNodeConditions, clusterv1.UnhealthyNodeCondition{
			Type: corev1.NodeConditionType(c.Type), Status: corev1.ConditionStatus(c.Status), TimeoutSeconds: seconds(c.Timeout),
		})
	}
	for _, c := range from.Machine {
		checks.UnhealthyMachineConditions = append(checks.UnhealthyMachineConditions, clusterv1.UnhealthyMachineCondition{
			Type: c.Type, Status: metav1.ConditionStatus(c.Status), TimeoutSeconds: seconds(c.Timeout),
		})
	}
	trigger := intstr.FromInt32(most)
	return clusterv1.MachineHealthCheckSpec{
		ClusterName: cluster,
		Selector: metav1.LabelSelector{
			MatchLabels:      map[string]string{clusterv1.ClusterNameLabel: cluster},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: clusterv1.MachineControlPlaneLabel, Operator: metav1.LabelSelectorOpExists}},
		},
		Checks: checks,
		Remediation: clusterv1.MachineHealthCheckRemediation{
			TriggerIf: clusterv1.MachineHealthCheckRemediationTriggerIf{UnhealthyLessThanOrEqualTo: &trigger},
			TemplateRef: clusterv1.MachineHealthCheckRemediationTemplateReference{
				APIVersion: v1alpha1.GroupVersion().String(), Kind: observe.TemplateKind, Name: templateName(p.Name),
			},
		},
	}
}

func startupSeconds(d time.Duration) *int32 {
	if d == 0 {
		return new(int32)
	}
	return seconds(max(d, minNodeStartup))
}

// seconds converts a duration to seconds. It rounds up, so that no machine counts as unhealthy
// earlier than the policy specifies.
func seconds(d time.Duration) *int32 {
	s := int32((d + time.Second - 1) / time.Second)
	return &s
}

// templateProblems returns a problem for each MachineHealthCheck that refers to a missing or
// unreadable template of scute, because Cluster API does not report that on an object of scute. The
// policy's own template is never missing, because each reconciliation creates it.
func templateProblems(p *v1alpha1.RepairPolicy, s *scope, checks []clusterv1.MachineHealthCheck, templates []v1alpha1.SurgeRemediationTemplate) []string {
	byName := make(map[string]*v1alpha1.SurgeRemediationTemplate, len(templates))
	for i := range templates {
		byName[templates[i].Name] = &templates[i]
	}
	var list []string
	for i := range checks {
		c := &checks[i]
		if !observe.UsesScute(c) || !c.DeletionTimestamp.IsZero() || !slices.Contains(s.clusters, c.Spec.ClusterName) {
			continue
		}
		name := c.Spec.Remediation.TemplateRef.Name
		refers := fmt.Sprintf("cluster %s: MachineHealthCheck %s refers to %s %s, ", c.Spec.ClusterName, c.Name, observe.TemplateKind, name)
		switch t := byName[name]; {
		case t == nil && name != templateName(p.Name):
			list = append(list, refers+"which does not exist, so it requests no remediation: create it, or set the templateRef to "+templateName(p.Name))
		case t != nil && t.Unreadable.Spec != nil:
			list = append(list, refers+"which is invalid ("+t.Unreadable.Spec.String()+"), so its requests wait: correct the field")
		}
	}
	return list
}

// conflictingCheck returns a MachineHealthCheck of another author that remediates machines of the
// same control plane without scute, or nil. wired reports whether there is one of another author
// that requests remediations from scute. Such a MachineHealthCheck does not conflict with the
// policy's own, but replaces it.
func conflictingCheck(checks []clusterv1.MachineHealthCheck, owner client.Object, cluster string, machines []clusterv1.Machine) (other *clusterv1.MachineHealthCheck, wired bool) {
	own := labels.Set{clusterv1.ClusterNameLabel: cluster, clusterv1.MachineControlPlaneLabel: "", clusterv1.MachineControlPlaneNameLabel: owner.GetName()}
	for i := range checks {
		c := &checks[i]
		if c.Spec.ClusterName != cluster || c.Labels[policyLabel] != "" || !c.DeletionTimestamp.IsZero() {
			continue
		}
		selector := observe.Selector(c)
		selects := selector.Matches(own)
		for j := range machines {
			selects = selects || selector.Matches(labels.Set(machines[j].Labels))
		}
		if !selects {
			continue
		}
		if observe.UsesScute(c) {
			wired = true
			continue
		}
		return c, wired
	}
	return nil, wired
}

// competingChecks returns a problem for each MachineHealthCheck that remediates the policy's
// workers without scute. scute does not remediate those machines.
func competingChecks(p *v1alpha1.RepairPolicy, s *scope, checks []clusterv1.MachineHealthCheck) []string {
	var list []string
	for cluster, machines := range s.workers {
		for i := range checks {
			c := &checks[i]
			if !observe.RemediatesDirectly(c, cluster) {
				continue
			}
			selector := observe.Selector(c)
			if slices.ContainsFunc(machines, func(m *clusterv1.Machine) bool { return selector.Matches(labels.Set(m.Labels)) }) {
				list = append(list, fmt.Sprintf("cluster %s: MachineHealthCheck %s remediates workers itself, so scute does not: set its templateRef to %s %s, or delete it",
					cluster, c.Name, observe.TemplateKind, templateName(p.Name)))
			}
		}
	}
	slices.Sort(list)
	return list
}
