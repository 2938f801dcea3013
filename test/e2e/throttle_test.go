package e2e

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// TestThrottle checks that a tenant cannot stop another tenant's runs. It occupies the only slot with a command that
// does not end, has other runs waiting, and has runs that fail again and again. Each run that cannot start a task
// reports why.
func TestThrottle(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	tenant, neighbor := workflowStage(ctx, t, "throttle-tenant"), workflowStage(ctx, t, "throttle-neighbor")
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{Args: []string{"--run-concurrency", "1", "--enable-exec", "--namespace-events-per-hour", "60"}})
	because := func(reason string) func(*v1alpha1.WorkflowRun) bool {
		return func(w *v1alpha1.WorkflowRun) bool {
			c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionThrottled)
			return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason && w.Status.Message == c.Message
		}
	}

	neighbor.create(ctx, t, "waits", "tasks: [{name: wait, kind: Wait, with: {object: {apiVersion: v1, kind: ConfigMap, name: never}, for: ready}}]")
	neighbor.until(ctx, t, "waits", func(w *v1alpha1.WorkflowRun) bool { return scuted.TaskOf(w, "wait").Phase == v1alpha1.TaskRunning })
	tenant.create(ctx, t, "long", "tasks: [{name: sleep, kind: Exec, with: {command: [sleep, '3600']}}]")
	tenant.until(ctx, t, "long", func(w *v1alpha1.WorkflowRun) bool { return scuted.TaskOf(w, "sleep").Phase == v1alpha1.TaskRunning })
	tenant.create(ctx, t, "queued", "tasks:\n"+apply("a", configMap("queued-a", "1"), ""))
	tenant.until(ctx, t, "queued", because("NoFreePlace"))
	neighbor.run(ctx, t, "passes", v1alpha1.RunSucceeded, "tasks:\n"+apply("a", configMap("passes-a", "1"), ""))
	tenant.maps(ctx, t, "!queued-a")

	long := tenant.until(ctx, t, "long", func(*v1alpha1.WorkflowRun) bool { return true })
	harness.Must(t, tenant.admin.Delete(ctx, long))
	queued := tenant.rests(ctx, t, "queued", v1alpha1.RunSucceeded)
	if c := meta.FindStatusCondition(queued.Status.Conditions, v1alpha1.ConditionThrottled); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("Throttled of a finished run = %+v, want False", c)
	}

	tenant.create(ctx, t, "fails", "tasks: [{name: fails, kind: Exec, with: {command: ['false']}, retry: {max: 1000, delay: 0s}}]")
	tenant.until(ctx, t, "fails", because("QuotaExceeded"))
	tenant.create(ctx, t, "late", "tasks:\n"+apply("a", configMap("late-a", "1"), ""))
	tenant.until(ctx, t, "late", because("QuotaExceeded"))
	neighbor.run(ctx, t, "passes-too", v1alpha1.RunSucceeded, "tasks:\n"+apply("a", configMap("passes-too-a", "1"), ""))
	tenant.maps(ctx, t, "!late-a")
}
