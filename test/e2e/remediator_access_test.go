package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestRemediatorAccess compares the chart's permissions for remediation with the requests in the API server's audit
// log. Without a policy the daemon watches nothing of Cluster API. With a policy no request is denied, and every
// permission is used.
func TestRemediatorAccess(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const ns = "remedies"
	shared.cluster(ctx, t, shared.blue, testbed.Tiny(ns, "tiny"))
	c, err := shared.blue.Client()
	harness.Must(t, err)
	admin := shared.blue.Side.Client() // knows Cluster API's kinds
	before := auditTrail(t, shared.blue)
	d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{})
	harness.Await(ctx, t, "the daemon watches for policies", func() string {
		if len(before.requests(t, func(r request) bool { return ofDaemon(r) && r.resource() == "repairpolicies.scute.dev" })) > 0 {
			return ""
		}
		return "it does not"
	})
	for _, r := range before.requests(t, ofDaemon) {
		if strings.HasSuffix(r.ObjectRef.Group, "cluster.x-k8s.io") {
			t.Errorf("request without a policy: %s", r)
		}
	}

	p := &v1alpha1.RepairPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "repair"},
		Spec: v1alpha1.RepairPolicySpec{
			Hold: &v1alpha1.Duration{Duration: time.Hour},
			Checks: v1alpha1.RepairChecks{UnhealthyNodeConditions: []v1alpha1.UnhealthyCondition{
				{Type: "Ready", Status: "False", Timeout: v1alpha1.Duration{Duration: time.Second}},
			}},
		},
	}
	harness.Must(t, c.Create(ctx, p))
	limits := &v1alpha1.RepairLimits{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.RepairLimitsName}}
	harness.Must(t, c.Create(ctx, limits))
	cleanup(t, func(ctx context.Context) error { return client.IgnoreNotFound(c.Delete(ctx, limits)) })
	harness.Await(ctx, t, "the limits say how many machines there are", func() string {
		harness.Must(t, c.Get(ctx, client.ObjectKeyFromObject(limits), limits))
		if limits.Status.Machines == 0 {
			return "they say " + limits.Status.Message
		}
		return ""
	})
	checks := func() []clusterv1.MachineHealthCheck {
		list := &clusterv1.MachineHealthCheckList{}
		harness.Must(t, admin.List(ctx, list, client.InNamespace(ns), client.HasLabels{"scute.dev/policy"}))
		return list.Items
	}
	template := &v1alpha1.SurgeRemediationTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "scute-repair"}}
	harness.Await(ctx, t, "the policy owns a health check and a template", func() string {
		if err := c.Get(ctx, client.ObjectKeyFromObject(template), template); err != nil {
			return err.Error()
		}
		return expect(1, len(checks()), "health checks")
	})
	// Another client changes both.
	harness.Must(t, c.Patch(ctx, template, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":null}}`))))
	check := checks()[0]
	harness.Must(t, admin.Patch(ctx, &check, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"checks":{"nodeStartupTimeoutSeconds":77}}}`))))
	harness.Await(ctx, t, "both are mended", func() string {
		harness.Must(t, c.Get(ctx, client.ObjectKeyFromObject(template), template))
		if len(template.Labels) == 0 {
			return "the template is not"
		}
		return expect(600, int(*checks()[0].Spec.Checks.NodeStartupTimeoutSeconds), "seconds to start up")
	})
	harness.Must(t, c.Patch(ctx, p, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"healthCheck":false}}`))))
	harness.Await(ctx, t, "the health check is gone", func() string { return expect(0, len(checks()), "health checks") })

	w := shared.bed.Workload(ns, "tiny")
	m := controlPlaneMachine(ctx, t, admin, ns)
	harness.Must(t, w.BreakNode(ctx, m.Status.NodeRef.Name, corev1.ConditionFalse))
	requests := func() (phases []string) {
		list := &v1alpha1.SurgeRemediationList{}
		harness.Must(t, c.List(ctx, list, client.InNamespace(ns)))
		for i := range list.Items {
			phases = append(phases, string(list.Items[i].Status.Phase))
		}
		return phases
	}
	harness.Await(ctx, t, "the machine is held", func() string { return expect("[Held]", fmt.Sprint(requests()), "requests") })
	harness.Must(t, w.RestoreNode(ctx, m.Status.NodeRef.Name))
	harness.Await(ctx, t, "the machine is well", func() string { return expect("[]", fmt.Sprint(requests()), "requests") })
	harness.Must(t, c.Delete(ctx, p))
	harness.Await(ctx, t, "the template is gone", func() string {
		if err := c.Get(ctx, client.ObjectKeyFromObject(template), template); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Sprint("it is there: ", err)
		}
		return ""
	})
	harness.Must(t, d.Stop(ctx))

	asDaemon := before.requests(t, ofDaemon)
	t.Logf("%d requests", len(asDaemon))
	for _, r := range asDaemon {
		if r.ResponseStatus.Code == 401 || r.ResponseStatus.Code == 403 {
			t.Errorf("request was denied: %s", r)
		}
	}
	role := &rbacv1.ClusterRole{}
	harness.Must(t, admin.Get(ctx, client.ObjectKey{Name: "scute-remediator"}, role))
	allUsed(t, "ClusterRole scute-remediator", role.Rules, asDaemon,
		"list repairlimits.scute.dev",   // for API servers that do not support streaming lists
		"get repairpolicies.scute.dev",  // for an escalation
		"list repairpolicies.scute.dev", // for API servers that do not support streaming lists
		"list surgeremediations.scute.dev",
		"list surgeremediationtemplates.scute.dev",
		"list a provider's resource")
}

// controlPlaneMachine returns the only control plane Machine of a namespace.
func controlPlaneMachine(ctx context.Context, t *testing.T, c client.Client, namespace string) *clusterv1.Machine {
	t.Helper()
	list := &clusterv1.MachineList{}
	harness.Must(t, c.List(ctx, list, client.InNamespace(namespace), client.HasLabels{clusterv1.MachineControlPlaneLabel}))
	if len(list.Items) != 1 {
		t.Fatalf("%d control plane machines, want 1", len(list.Items))
	}
	return &list.Items[0]
}

func expect[T comparable](want, got T, what string) string {
	if want == got {
		return ""
	}
	return fmt.Sprintf("%v %s, not %v", got, what, want)
}
