package remediation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestPolicy checks that the objects that a RepairPolicy owns follow the policy and the control planes that it selects.
func TestPolicy(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	daemon(t, scuted.DaemonOptions{})
	t.Run("owns", func(t *testing.T) { t.Parallel(); owns(ctx, t) })
	t.Run("yields", func(t *testing.T) { t.Parallel(); yields(ctx, t) })
	t.Run("told", func(t *testing.T) { t.Parallel(); told(ctx, t) })
	t.Run("unselected", func(t *testing.T) { t.Parallel(); unselected(ctx, t) })
	t.Run("refuses", func(t *testing.T) { t.Parallel(); refuses(ctx, t) })
}

// owns checks the control plane's health check: it refers to scute, its limit follows the number of machines, it is
// restored after another client changes or deletes it, a dry run deletes it, and it is deleted together with the
// policy.
func owns(ctx context.Context, t *testing.T) {
	c := newCluster(ctx, t, testbed.Cluster{ControlPlanes: 3})
	p := policy(ctx, t, c.Namespace, nil)
	check := awaitCheck(ctx, t, c, 1)
	ref := check.Spec.Remediation.TemplateRef
	if ref.Kind != "SurgeRemediationTemplate" || ref.Name != "scute-"+policyName {
		t.Errorf("templateRef of the health check = %+v, want scute's template", ref)
	}
	if !metav1.IsControlledBy(check, p) {
		t.Errorf("owners of the health check = %+v, want the policy", check.OwnerReferences)
	}
	harness.Must(t, shared.admin.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: ref.Name}, &v1alpha1.SurgeRemediationTemplate{}))
	awaitPolicy(ctx, t, p, "it watches all", func(s *v1alpha1.RepairPolicyStatus) bool {
		return s.Clusters == 1 && s.Machines == 3 && s.Unhealthy == 0 && meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady) && s.ObservedGeneration == 1
	})
	harness.Await(ctx, t, "Cluster API looks at the machines", func() string {
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(check), check))
		return cmp.Diff(3, len(check.Status.Targets))
	})

	harness.Must(t, shared.admin.Delete(ctx, check))
	check = awaitCheck(ctx, t, c, 1)
	changed := check.DeepCopy()
	changed.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"nobody": "bears-it"}}
	harness.Must(t, shared.admin.Patch(ctx, changed, client.MergeFrom(check)))
	harness.Await(ctx, t, "the health check is mended", func() string {
		now := &clusterv1.MachineHealthCheck{}
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(check), now))
		return cmp.Diff(check.Spec, now.Spec)
	})

	kcp := c.kcp(ctx)
	before, five := kcp.DeepCopy(), int32(5)
	kcp.Spec.Replicas = &five
	harness.Must(t, shared.admin.Patch(ctx, kcp, client.MergeFrom(before)))
	awaitCheck(ctx, t, c, 2)
	awaitPolicy(ctx, t, p, "it watches five", func(s *v1alpha1.RepairPolicyStatus) bool { return s.Machines == 5 })

	change(ctx, t, p, func(s *v1alpha1.RepairPolicySpec) { s.DryRun = true })
	awaitNone(ctx, t, c)
	change(ctx, t, p, func(s *v1alpha1.RepairPolicySpec) { s.DryRun = false })
	awaitCheck(ctx, t, c, 2)
	change(ctx, t, p, func(s *v1alpha1.RepairPolicySpec) {
		s.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"nobody": "bears-it"}}
	})
	awaitNone(ctx, t, c)
	awaitPolicy(ctx, t, p, "it watches none", func(s *v1alpha1.RepairPolicyStatus) bool { return s.Clusters == 0 && s.Machines == 0 })
	change(ctx, t, p, func(s *v1alpha1.RepairPolicySpec) { s.Selector = metav1.LabelSelector{} })
	awaitCheck(ctx, t, c, 2)
	harness.Must(t, shared.admin.Delete(ctx, p))
	awaitNone(ctx, t, c)
	harness.Await(ctx, t, "the template is gone", func() string {
		err := shared.admin.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: ref.Name}, &v1alpha1.SurgeRemediationTemplate{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Sprint("it is there: ", err)
		}
		return ""
	})
}

// yields checks that scute creates no health check while another one selects the same machines, until that one is
// deleted or refers to scute.
func yields(ctx context.Context, t *testing.T) {
	c := newCluster(ctx, t, testbed.Cluster{ControlPlanes: 1})
	theirs := &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "theirs"},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: c.Name, Selector: metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.ClusterNameLabel: c.Name}},
		},
	}
	harness.Must(t, shared.admin.Create(ctx, theirs))
	p := policy(ctx, t, c.Namespace, nil)
	awaitPolicy(ctx, t, p, "it says which health check is in the way", func(s *v1alpha1.RepairPolicyStatus) bool {
		stalled := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionStalled)
		return stalled != nil && stalled.Status == metav1.ConditionTrue && stalled.Reason == "Conflict" && strings.Contains(stalled.Message, "theirs") && s.Machines == 1
	})
	awaitNone(ctx, t, c)

	wired := theirs.DeepCopy()
	wired.Spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{
		APIVersion: v1alpha1.GroupVersion().String(), Kind: "SurgeRemediationTemplate", Name: "scute-" + policyName,
	}
	harness.Must(t, shared.admin.Patch(ctx, wired, client.MergeFrom(theirs)))
	fine := func(s *v1alpha1.RepairPolicyStatus) bool {
		return meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady) && !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionStalled)
	}
	awaitPolicy(ctx, t, p, "it is content with one that is wired", fine)
	awaitNone(ctx, t, c)

	harness.Must(t, shared.admin.Delete(ctx, wired))
	awaitCheck(ctx, t, c, 1)
	awaitPolicy(ctx, t, p, "nothing is in the way any more", fine)
}

// refuses checks that an invalid policy's status names the field and the correction.
func refuses(ctx context.Context, t *testing.T) {
	c := newCluster(ctx, t, testbed.Cluster{ControlPlanes: 1})
	p := policy(ctx, t, c.Namespace, func(s *v1alpha1.RepairPolicySpec) {
		s.Selector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	})
	awaitPolicy(ctx, t, p, "it names the field", func(s *v1alpha1.RepairPolicyStatus) bool {
		stalled := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionStalled)
		return stalled != nil && stalled.Status == metav1.ConditionTrue && strings.Contains(stalled.Message, "spec.selector") && s.Message != ""
	})
	awaitNone(ctx, t, c)
	change(ctx, t, p, func(s *v1alpha1.RepairPolicySpec) { s.Selector = metav1.LabelSelector{} })
	awaitCheck(ctx, t, c, 1)
}

// told checks that a machine's request has the state of its remediation and exists until the machine is healthy, and
// that events report it too.
func told(ctx context.Context, t *testing.T) {
	c := newCluster(ctx, t, testbed.Cluster{ControlPlanes: 1})
	m := c.machines(ctx, true)[0]
	p := policy(ctx, t, c.Namespace, func(s *v1alpha1.RepairPolicySpec) { s.Hold = &v1alpha1.Duration{Duration: time.Hour} })
	awaitCheck(ctx, t, c, 1)
	harness.Must(t, notReady(ctx, c, &m))
	request := awaitRequest(ctx, t, &m, "it is held", func(r *v1alpha1.SurgeRemediation) bool {
		return r.Status.Phase == v1alpha1.RemediationHeld && len(r.Finalizers) == 1 && r.Status.Policy == p.Name &&
			meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionReconciling)
	})
	awaitPolicy(ctx, t, p, "it counts the machine", func(s *v1alpha1.RepairPolicyStatus) bool { return s.Unhealthy == 1 && s.Active == 0 })
	awaitEvent(ctx, t, "Machine", &m, "MachineUnhealthy")
	awaitEvent(ctx, t, "Machine", &m, "RemediationHeld")

	harness.Must(t, shared.admin.Delete(ctx, request))
	awaitRequest(ctx, t, &m, "somebody deletes it", func(r *v1alpha1.SurgeRemediation) bool {
		return !r.DeletionTimestamp.IsZero() && len(r.Finalizers) == 1
	})
	harness.Must(t, wellAgain(ctx, c, &m))
	harness.Await(ctx, t, "the request is gone", func() string {
		err := shared.admin.Get(ctx, client.ObjectKeyFromObject(&m), &v1alpha1.SurgeRemediation{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Sprint("it is there: ", err)
		}
		return ""
	})
	awaitEvent(ctx, t, "Machine", &m, "MachineRecovered")
	c.calm(ctx, t)
}

// unselected checks that a request without a policy only gets a status that says so, and no finalizer.
func unselected(ctx context.Context, t *testing.T) {
	c := newCluster(ctx, t, testbed.Cluster{ControlPlanes: 1})
	m := c.machines(ctx, true)[0]
	orphan := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
	harness.Must(t, shared.admin.Create(ctx, orphan))
	awaitRequest(ctx, t, &m, "nobody selects its machine", func(r *v1alpha1.SurgeRemediation) bool {
		return r.Status.Phase == v1alpha1.RemediationUnselected && r.Status.Next != "" && len(r.Finalizers) == 0
	})
	harness.Must(t, shared.admin.Delete(ctx, orphan))
}

// awaitRequest waits until a machine's SurgeRemediation satisfies is.
func awaitRequest(ctx context.Context, t *testing.T, m *clusterv1.Machine, what string, is func(*v1alpha1.SurgeRemediation) bool) *v1alpha1.SurgeRemediation {
	t.Helper()
	r := &v1alpha1.SurgeRemediation{}
	harness.Await(ctx, t, what, func() string {
		*r = v1alpha1.SurgeRemediation{}
		if err := shared.admin.Get(ctx, client.ObjectKeyFromObject(m), r); err != nil {
			return err.Error()
		}
		if is(r) {
			return ""
		}
		return fmt.Sprintf("%v %+v", r.Finalizers, r.Status)
	})
	return r
}

// awaitEvent waits for a Kubernetes event about an object.
func awaitEvent(ctx context.Context, t *testing.T, kind string, about client.Object, reason string) {
	t.Helper()
	harness.Await(ctx, t, "there is an event "+reason+" about the "+kind, func() string {
		list := &corev1.EventList{}
		harness.Must(t, shared.admin.List(ctx, list, client.InNamespace(about.GetNamespace())))
		var others []string
		for i := range list.Items {
			if e := &list.Items[i]; e.InvolvedObject.Kind == kind && e.InvolvedObject.UID == about.GetUID() {
				if e.Reason == reason {
					return ""
				}
				others = append(others, e.Reason)
			}
		}
		return fmt.Sprint("there are ", others)
	})
}

// awaitCheck waits until the policy's health check of a cluster's control plane has a limit.
func awaitCheck(ctx context.Context, t *testing.T, c *cluster, limit int) *clusterv1.MachineHealthCheck {
	t.Helper()
	key := client.ObjectKey{Namespace: c.Namespace, Name: c.kcp(ctx).Name + "-scute"}
	check := &clusterv1.MachineHealthCheck{}
	harness.Await(ctx, t, fmt.Sprintf("MachineHealthCheck %s has the limit %d", key.Name, limit), func() string {
		*check = clusterv1.MachineHealthCheck{}
		if err := shared.admin.Get(ctx, key, check); err != nil {
			return err.Error()
		}
		if !check.DeletionTimestamp.IsZero() {
			return "it is being deleted"
		}
		return cmp.Diff(limit, check.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo.IntValue())
	})
	return check
}

// awaitNone waits until the policy has no health check in the cluster's namespace.
func awaitNone(ctx context.Context, t *testing.T, c *cluster) {
	t.Helper()
	harness.Await(ctx, t, "there is no health check of the policy", func() string {
		list := &clusterv1.MachineHealthCheckList{}
		harness.Must(t, shared.admin.List(ctx, list, client.InNamespace(c.Namespace), client.HasLabels{"scute.dev/policy"}))
		if len(list.Items) == 0 {
			return ""
		}
		return "there is " + list.Items[0].Name
	})
}

// change changes a policy's spec.
func change(ctx context.Context, t *testing.T, p *v1alpha1.RepairPolicy, to func(*v1alpha1.RepairPolicySpec)) {
	t.Helper()
	now := &v1alpha1.RepairPolicy{}
	harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(p), now))
	before := now.DeepCopy()
	to(&now.Spec)
	harness.Must(t, shared.admin.Patch(ctx, now, client.MergeFrom(before)))
}
