package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/remediation"
	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/observe"
	"scute.dev/view"
)

type inventory struct {
	*remediation.Objects
	checks    []clusterv1.MachineHealthCheck
	templates []v1alpha1.SurgeRemediationTemplate
	now       time.Time
	kit       *kit.Kit

	found []result
}

func checkRemediations(ctx context.Context, v *diagnosis) {
	const subject = "machines"
	objects, err := remediation.Read(ctx, v.cluster, "")
	if err != nil {
		v.report(warning(subject, "ask for permission to list Cluster API's clusters and machines", "they could not be listed: %v", err))
		return
	}
	l := &inventory{Objects: objects, now: v.now(), kit: v.kit}
	var checks clusterv1.MachineHealthCheckList
	if err := v.cluster.Client.List(ctx, &checks); err != nil && !meta.IsNoMatchError(err) {
		l.Forbidden = append(l.Forbidden, "machinehealthchecks")
	}
	var templates v1alpha1.SurgeRemediationTemplateList
	if err := v.cluster.Client.List(ctx, &templates); err != nil && !meta.IsNoMatchError(err) {
		l.Forbidden, checks.Items = append(l.Forbidden, "surgeremediationtemplates"), nil
	}
	l.checks, l.templates = checks.Items, templates.Items
	for _, r := range l.results() {
		v.report(r)
	}
}

func (l *inventory) results() []result {
	if !l.Served {
		return []result{warning("remediations", "upgrade the chart, or ask for the ClusterRole scute-viewer", "SurgeRemediations and RepairPolicies are not served here, or you may not list them")}
	}
	if len(l.Forbidden) > 0 {
		l.add(warning("machines", "ask for permission to list them", "not checked: %s", strings.Join(l.Forbidden, ", ")))
	}
	l.policies()
	l.fleetLimits()
	before := len(l.found)
	l.orphans()
	l.stalled()
	l.unselectedChecks()
	l.leftoverAnnotations()
	l.controlPlanes()
	if len(l.found) == before {
		open := 0
		for i := range l.Remediations {
			if remediation.IsOpen(&l.Remediations[i]) {
				open++
			}
		}
		l.add(ok("remediations", "%d open, %d in total; no annotation is left over", open, len(l.Remediations)))
	}
	return l.found
}

func (l *inventory) add(r result) { l.found = append(l.found, r) }

// policies reports RepairPolicies that start no remediation.
func (l *inventory) policies() {
	const subject = "policies"
	if len(l.Policies) == 0 {
		l.add(ok(subject, "no RepairPolicy: scute does not change any machine"))
		return
	}
	before := len(l.found)
	for i := range l.Policies {
		p := &l.Policies[i]
		name, edit := p.Namespace+"/"+p.Name, "`kubectl -n "+p.Namespace+" edit repairpolicy "+p.Name+"`"
		if len(p.Spec.PauseRequests) > 0 {
			l.add(warning(subject, "when the reason has passed, remove it from spec.pauseRequests: "+edit, "%s starts no remediation: %s", name, strings.Join(p.Spec.PauseRequests, "; ")))
		}
		if p.Spec.DryRun {
			l.add(warning(subject, "when you agree with its decisions ("+l.kit.Hint("", "log", "tail")+"), set spec.dryRun to false: "+edit,
				"%s is a dry run: it records decisions and changes nothing", name))
		}
		if p.Status.MassFailure {
			l.add(warning(subject, "find the common cause; remediation continues after the cooldown", "%s: %s", name, p.Status.Message))
		}
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
			l.add(problem(subject, edit, "%s is stalled: %s", name, c.Message))
		}
	}
	if len(l.found) == before {
		l.add(ok(subject, "%s, none paused or a dry run", view.Count(len(l.Policies), "RepairPolicy", "RepairPolicies")))
	}
}

// fleetLimits reports RepairLimits that block remediations.
func (l *inventory) fleetLimits() {
	const subject, edit = "limits", "kubectl edit repairlimits default"
	if l.Limits == nil {
		return
	}
	if pauses := l.Limits.Spec.PauseRequests; len(pauses) > 0 {
		l.add(warning(subject, "when the reason has passed, remove it from spec.pauseRequests: "+edit, "RepairLimits stops all new remediations: %s", strings.Join(pauses, "; ")))
	}
	if c := meta.FindStatusCondition(l.Limits.Status.Conditions, v1alpha1.ConditionMassFailure); c != nil && c.Status == metav1.ConditionTrue {
		l.add(warning(subject, "find the common cause; remediation continues after the cooldown", "mass failure (%s): %s", c.Reason, c.Message))
	}
	if c := meta.FindStatusCondition(l.Limits.Status.Conditions, v1alpha1.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		l.add(problem(subject, edit, "RepairLimits is stalled: %s", c.Message))
	}
}

func (l *inventory) machine(namespace, name string) *clusterv1.Machine {
	for i := range l.Machines {
		if m := &l.Machines[i]; m.Namespace == namespace && m.Name == name {
			return m
		}
	}
	return nil
}

// orphans reports remediations of machines that do not exist.
func (l *inventory) orphans() {
	for i := range l.Remediations {
		r := &l.Remediations[i]
		if m := l.machine(r.Namespace, r.Name); m != nil || l.now.Sub(r.CreationTimestamp.Time) < startTimeout || recent(l.now, r.DeletionTimestamp) {
			continue
		}
		l.add(warning("remediations", "make sure that scuted runs, then delete it: `kubectl -n "+r.Namespace+" delete surgeremediation "+r.Name+"`",
			"%s/%s is the remediation of a machine that does not exist", r.Namespace, r.Name))
	}
}

func recent(now time.Time, at *metav1.Time) bool { return at != nil && now.Sub(at.Time) < startTimeout }

// stalled reports remediations that wait for an operator or a daemon. It omits remediations of
// machines that do not exist, which orphans reports.
func (l *inventory) stalled() {
	const subject = "remediations"
	for i := range l.Remediations {
		r := &l.Remediations[i]
		name, s := r.Namespace+"/"+r.Name, r.Status
		switch {
		case l.machine(r.Namespace, r.Name) == nil:
		case s.Phase == "" && l.now.Sub(r.CreationTimestamp.Time) > startTimeout:
			l.add(problem(subject, "check scuted above, and its log lines", "%s was requested %s and no daemon has acted on it", name, cli.Ago(l.now, r.CreationTimestamp.Time)))
		case s.Phase == v1alpha1.RemediationFrozen || s.Phase == v1alpha1.RemediationFailed:
			l.add(problem(subject, cmp.Or(s.Next, l.kit.Hint(r.Namespace, "describe", "remediation", r.Name)), "%s is %s: %s", name, s.Phase, s.Message))
		case r.Spec.Abort:
			l.add(warning(subject, l.kit.Hint(r.Namespace, "release", "remediation", r.Name), "%s is aborted: no further remediation of this machine is started", name))
		}
	}
}

// unselectedChecks reports MachineHealthChecks whose requests have no effect: no policy selects the
// cluster, or the template does not exist.
func (l *inventory) unselectedChecks() {
	for i := range l.checks {
		c := &l.checks[i]
		if c.Spec.Remediation.TemplateRef.Kind != "SurgeRemediationTemplate" {
			continue
		}
		cluster := slices.IndexFunc(l.Clusters, func(k clusterv1.Cluster) bool { return k.Namespace == c.Namespace && k.Name == c.Spec.ClusterName })
		if cluster < 0 {
			continue
		}
		if name := c.Spec.Remediation.TemplateRef.Name; l.selected(&l.Clusters[cluster]) {
			if !slices.ContainsFunc(l.templates, func(t v1alpha1.SurgeRemediationTemplate) bool { return t.Namespace == c.Namespace && t.Name == name }) {
				l.add(problem("health checks", "create it, or set the MachineHealthCheck's remediation.templateRef to the template scute-POLICY of the RepairPolicy",
					"MachineHealthCheck %s/%s refers to SurgeRemediationTemplate %s, which does not exist: it requests no remediation", c.Namespace, c.Name, name))
			}
			continue
		}
		l.add(problem("health checks", "create a RepairPolicy in namespace "+c.Namespace+" whose selector matches Cluster "+c.Spec.ClusterName+", or remove remediation.templateRef from the MachineHealthCheck",
			"MachineHealthCheck %s/%s asks scute to remediate, and no RepairPolicy selects Cluster %s: its machines are never replaced", c.Namespace, c.Name, c.Spec.ClusterName))
	}
}

// selected reports whether a policy selects machines of a cluster.
func (l *inventory) selected(c *clusterv1.Cluster) bool {
	return slices.ContainsFunc(l.Policies, func(p v1alpha1.RepairPolicy) bool {
		return p.Namespace == c.Namespace && p.DeletionTimestamp == nil &&
			(observe.Selects(&p, c.Labels, string(remediator.ControlPlane)) != object.False || observe.Selects(&p, c.Labels, string(remediator.Deployment)) != object.False)
	})
}

// clustersInRemediation returns the clusters (namespace/name) that have open remediations. scute
// may have annotated the machines of these clusters.
func (l *inventory) clustersInRemediation() map[string]bool {
	out := make(map[string]bool)
	for i := range l.Remediations {
		r := &l.Remediations[i]
		if m := l.machine(r.Namespace, r.Name); m != nil && remediation.IsOpen(r) {
			out[m.Namespace+"/"+m.Spec.ClusterName] = true
		}
	}
	return out
}

// leftoverAnnotations reports annotations on machines of clusters without open remediations.
func (l *inventory) leftoverAnnotations() {
	tended := l.clustersInRemediation()
	for i := range l.Machines {
		m := &l.Machines[i]
		if m.DeletionTimestamp != nil || tended[m.Namespace+"/"+m.Spec.ClusterName] {
			continue
		}
		var left []string
		if value, there := m.Annotations[v1alpha1.UnhealthyAnnotation]; there && l.isLeftover(value) {
			left = append(left, v1alpha1.UnhealthyAnnotation)
		}
		if m.Annotations[clusterv1.DeleteMachineAnnotation] == remediator.DeleteValue {
			left = append(left, clusterv1.DeleteMachineAnnotation)
		}
		if len(left) > 0 {
			l.add(warning("machines", "if it is still there after scuted has run for a minute: `kubectl -n "+m.Namespace+" annotate machine "+m.Name+" "+strings.Join(left, "- ")+"-`",
				"%s/%s has %s, and no remediation of its cluster is open", m.Namespace, m.Name, strings.Join(left, " and ")))
		}
	}
}

// isLeftover reports whether the annotation of an unhealthy machine is no longer in use: it is not
// recent and does not wait for its timeout, or it cannot be decoded.
func (l *inventory) isLeftover(value string) bool {
	var mark v1alpha1.UnhealthyMark
	if err := json.Unmarshal([]byte(value), &mark); err != nil {
		return true
	}
	return mark.State != string(remediator.Failing) && l.now.Sub(mark.Since.Time) > startTimeout
}

// controlPlanes reports annotations on control planes that are needed only during a remediation.
func (l *inventory) controlPlanes() {
	const subject = "machines"
	tended := l.clustersInRemediation()
	for _, o := range l.Owners {
		namespace, annotations, kind := o.GetNamespace(), o.GetAnnotations(), o.OwnerKind()
		if !kind.IsControlPlane() || tended[namespace+"/"+o.GetLabels()[clusterv1.ClusterNameLabel]] {
			continue
		}
		name := string(kind) + " " + namespace + "/" + o.GetName()
		without := func(annotation string) string {
			return "`kubectl -n " + namespace + " annotate " + strings.ToLower(string(kind)) + " " + o.GetName() + " " + annotation + "-`"
		}
		if value, there := annotations[controlplanev1.RemediationInProgressAnnotation]; there && l.isStale(namespace, value) {
			l.add(warning(subject, "while it is there, the control plane does not remediate machines itself: "+without(controlplanev1.RemediationInProgressAnnotation),
				"%s has %s, and nothing is in progress", name, controlplanev1.RemediationInProgressAnnotation))
		}
		if _, there := annotations[object.TouchAnnotation]; there {
			l.add(warning(subject, "it does no harm: "+without(object.TouchAnnotation), "%s has %s, and no remediation is in progress", name, object.TouchAnnotation))
		}
	}
}

// staleAfter is how long a control plane's remediation annotation may exist. The control plane
// removes it when it creates a machine.
const staleAfter = 10 * time.Minute

// isStale reports whether the remediation annotation of a control plane is too old, names a machine
// that still exists, or cannot be decoded.
func (l *inventory) isStale(namespace, value string) bool {
	var mark struct {
		Machine   string      `json:"machine"`
		Timestamp metav1.Time `json:"timestamp"`
	}
	if err := json.Unmarshal([]byte(value), &mark); err != nil {
		return true
	}
	m := l.machine(namespace, mark.Machine)
	return l.now.Sub(mark.Timestamp.Time) > staleAfter || l.now.Sub(mark.Timestamp.Time) > startTimeout && m != nil && m.DeletionTimestamp == nil
}
