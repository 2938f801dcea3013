package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
	"scute.dev/workflow"
)

// TestWorkflow checks every policy for a failed task, with the daemon and real objects on a real API server. The
// failure is a Pod that crashes.
func TestWorkflow(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	s := workflowStage(ctx, t, "workflows")
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	listen := ports.AddressForTest(t)
	s.nats = "nats://" + listen
	d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{
		LogDir: dir, Listen: listen, Health: ports.AddressForTest(t), Args: []string{"--run-concurrency", "32"},
	})
	harness.Must(t, d.WaitReady(ctx)) // some tests first write to its log

	t.Run("", func(t *testing.T) { // all at once, and then the other tests
		for name, play := range map[string]func(context.Context, *testing.T){
			"outputs":                 s.outputs,
			"retry recreates":         s.recreates,
			"rollback":                s.rollsBack,
			"ignore":                  s.ignores,
			"ignore children":         s.ignoresChildren,
			"abort, mend, resume":     s.mends,
			"pause, retry":            s.pausesRetry,
			"pause, ignore":           s.pausesIgnore,
			"pause, ignore children":  s.pausesIgnoreChildren,
			"alternative branch":      s.alternative,
			"timeouts":                s.timeouts,
			"policy of task and kind": s.policies,
			"no permission":           s.forbidden,
			"suspend":                 s.suspends,
			"refused":                 s.refuses,
			"deleted":                 s.deleted,
			"adopted":                 s.adopts,
			"stranded":                s.strands,
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); play(ctx, t) })
		}
	})
	t.Run("a lifted pause", func(t *testing.T) { s.lifted(ctx, t) })
	harness.Must(t, d.Stop(ctx))
	t.Run("policy by flag and by environment", func(t *testing.T) {
		failing := "tasks:\n%s" + apply("child", configMap("NAME-child", "1"), ", needs: [fails]")
		spec := func(name string) string {
			return strings.ReplaceAll(strings.Replace(failing, "%s", apply("fails", pod("NAME", crashing), ""), 1), "NAME", name)
		}
		flagged := harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir, Args: []string{"--default-failure-policy", "IgnoreChildren"}})
		stand(t, s.run(ctx, t, "by-flag", v1alpha1.RunDegraded, spec("by-flag")), "fails=Failed child=Skipped")
		harness.Must(t, flagged.Stop(ctx))
		t.Setenv("SCUTE_DEFAULT_FAILURE_POLICY", "Ignore")
		harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir})
		stand(t, s.run(ctx, t, "by-environment", v1alpha1.RunDegraded, spec("by-environment")), "fails=Ignored child=Succeeded")
	})
	t.Run("a finalizer that was removed", func(t *testing.T) {
		s.removed(ctx, t, func() *scuted.Daemon {
			return harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir, Listen: listen, Health: ports.AddressForTest(t)})
		})
	})
}

// outputs checks that a task can use the output of an earlier one.
func (s *stage) outputs(ctx context.Context, t *testing.T) {
	w := s.run(ctx, t, "chain", v1alpha1.RunSucceeded, "tasks:\n"+apply("a", configMap("chain-a", "1"), "")+
		apply("b", configMap("chain-b", "${tasks.a.output.objects.0.name}"), ", needs: [a]"))
	stand(t, w, "a=Succeeded b=Succeeded")
	var m corev1.ConfigMap
	if !s.exists(ctx, t, &m, "chain-b") || m.Data["v"] != "chain-a" {
		t.Errorf("data of chain-b = %v, want v=chain-a", m.Data)
	}
	if w.Status.Progress != "2/2" || w.Status.FinishedAt == nil || w.Status.LogSequence == 0 {
		t.Errorf("status = %+v, want a finished run with progress 2/2", w.Status)
	}
}

// recreates checks that a failed Pod is deleted, and created again only after its finalizer was removed.
func (s *stage) recreates(ctx context.Context, t *testing.T) {
	held := strings.Replace(pod("again", crashing), "labels:", "finalizers: [e2e.scute.dev/hold], labels:", 1)
	s.create(ctx, t, "recreates", "tasks:\n"+apply("p", held, ", retry: {max: 1, delay: 100ms, recreate: true}"))
	var first, still corev1.Pod
	key := client.ObjectKey{Namespace: s.ns, Name: "again"}
	harness.Await(ctx, t, "the Pod that failed is being deleted", func() string {
		if err := s.admin.Get(ctx, key, &first); err != nil || first.DeletionTimestamp == nil {
			return fmt.Sprint("it is not: ", err)
		}
		return ""
	})
	s.kubelet.set("again", isReady)
	pause(ctx, t, 2*time.Second)
	harness.Must(t, s.admin.Get(ctx, key, &still))
	if still.UID != first.UID {
		t.Fatal("the Pod was recreated before the failed one was deleted")
	}
	harness.Must(t, s.admin.Patch(ctx, &still, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	w := s.rests(ctx, t, "recreates", v1alpha1.RunSucceeded)
	if got := scuted.TaskOf(w, "p"); got.Attempts != 2 {
		t.Errorf("%d attempts, want 2", got.Attempts)
	}
	harness.Must(t, s.admin.Get(ctx, key, &still))
	if still.UID == first.UID {
		t.Error("the failed Pod was not recreated")
	}
	harness.Must(t, s.admin.Patch(ctx, &still, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
}

// rollsBack checks that a rollback deletes exactly the objects that the run created, restores those that it changed,
// and keeps the others.
func (s *stage) rollsBack(ctx context.Context, t *testing.T) {
	for _, name := range []string{"rb-same", "rb-mine"} {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name, Labels: map[string]string{"of": "user"}}, Data: map[string]string{"v": "1"}}
		harness.Must(t, s.admin.Create(ctx, m))
	}
	w := s.run(ctx, t, "rolls-back", v1alpha1.RunRolledBack, "failurePolicy: Rollback\ntasks:\n"+
		apply("a", configMap("rb-a", "1"), "")+
		apply("b", configMap("rb-b1", "1")+", "+configMap("rb-b2", "1"), ", needs: [a]")+
		apply("same", configMap("rb-same", "1"), "")+
		"- {name: mine, kind: Apply, with: {force: true, manifests: ["+configMap("rb-mine", "2")+"]}}\n"+
		apply("fails", pod("rb-fails", crashing), ", needs: [b, same, mine]")+
		apply("never", configMap("rb-never", "1"), ", needs: [fails]"))
	stand(t, w, "a=Undone b=Undone mine=Undone fails=Undone never=Pending")
	s.maps(ctx, t, "!rb-a !rb-b1 !rb-b2 !rb-never rb-same rb-mine")
	if s.exists(ctx, t, &corev1.Pod{}, "rb-fails") {
		t.Error("the failed Pod still exists")
	}
	for _, name := range []string{"rb-same", "rb-mine"} {
		var m corev1.ConfigMap
		if s.exists(ctx, t, &m, name) && (m.Data["v"] != "1" || m.Labels["of"] != "user" || m.Annotations["scute.dev/run"] != "") {
			t.Errorf("%s was not restored: %v %v %v", name, m.Data, m.Labels, m.Annotations)
		}
	}
	s.told(ctx, t, "rolls-back", "RollingBack", "RolledBack")
}

func (s *stage) ignores(ctx context.Context, t *testing.T) {
	w := s.run(ctx, t, "ignores", v1alpha1.RunDegraded, "tasks:\n"+
		apply("a", pod("ignored", crashing), ", failurePolicy: Ignore")+apply("b", configMap("ignores-b", "1"), ", needs: [a]"))
	stand(t, w, "a=Ignored b=Succeeded")
	s.maps(ctx, t, "ignores-b")
	s.told(ctx, t, "ignores", "TaskIgnored", "Degraded")
}

// ignoresChildren checks a diamond: d needs a, which failed, and c, which succeeded. e also runs, because its edge to a
// is optional.
func (s *stage) ignoresChildren(ctx context.Context, t *testing.T) {
	w := s.run(ctx, t, "diamond", v1alpha1.RunDegraded, "tasks:\n"+
		apply("root", configMap("di-root", "1"), "")+
		apply("a", pod("di-a", crashing), ", needs: [root], failurePolicy: IgnoreChildren")+
		apply("c", configMap("di-c", "1"), ", needs: [root]")+
		apply("d", configMap("di-d", "1"), ", needs: [a, c]")+
		apply("under", configMap("di-under", "1"), ", needs: [d]")+
		apply("e", configMap("di-e", "1"), ", needs: [{task: a, optional: true}, {task: c, optional: true}]"))
	stand(t, w, "root=Succeeded a=Failed c=Succeeded d=Skipped under=Skipped e=Succeeded")
	s.maps(ctx, t, "di-root di-c !di-d !di-under di-e")
}

// mends checks that the default policy stops the run, and that a resume after the cause was fixed skips finished tasks.
func (s *stage) mends(ctx context.Context, t *testing.T) {
	w := s.run(ctx, t, "mends", v1alpha1.RunAborted, "tasks:\n"+apply("a", configMap("mends-a", "1"), "")+
		apply("b", pod("mends", crashing), ", needs: [a]")+apply("c", configMap("mends-c", "1"), ", needs: [b]"))
	stand(t, w, "a=Succeeded b=Failed c=Pending")
	var m corev1.ConfigMap
	s.exists(ctx, t, &m, "mends-a")
	before := m.ResourceVersion
	s.kubelet.set("mends", isReady)
	for mended := (corev1.Pod{}); mended.Status.Message != isReady; pause(ctx, t, 100*time.Millisecond) {
		s.exists(ctx, t, &mended, "mends")
	}
	s.command(ctx, t, "mends", workflow.ResumeRun{Reason: "mended"})
	s.until(ctx, t, "mends", func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == v1alpha1.RunSucceeded })
	s.exists(ctx, t, &m, "mends-a")
	if m.ResourceVersion != before {
		t.Error("a finished task ran again")
	}
	s.maps(ctx, t, "mends-c")
}

// paused runs until one branch waits for an operator and the other has finished.
func (s *stage) paused(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	w := s.run(ctx, t, name, v1alpha1.RunPaused, "tasks:\n"+
		apply("fails", pod(name, crashing), ", failurePolicy: Pause")+
		apply("child", configMap(name+"-child", "1"), ", needs: [fails]")+
		apply("other", pod(name+"-other", isReady), "")+
		apply("after", configMap(name+"-after", "1"), ", needs: [other]"))
	stand(t, w, "fails=Paused child=Pending other=Succeeded after=Succeeded")
	if got := scuted.TaskOf(w, "fails"); !strings.Contains(got.Message, "CrashLoop") || !strings.Contains(w.Status.Next, "decide about fails") {
		t.Errorf("message %q, next %q: want the crash and the decision", got.Message, w.Status.Next)
	}
	s.maps(ctx, t, "!"+name+"-child "+name+"-after")
	s.told(ctx, t, name, "TaskPaused")
}

func (s *stage) pausesRetry(ctx context.Context, t *testing.T) {
	s.paused(ctx, t, "pr")
	s.command(ctx, t, "pr", workflow.Decision{
		Task: "fails", Action: workflow.ActRetry, Reason: "the manifest was wrong",
		With: []byte(`{"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pr-instead"}}]}`),
	})
	w := s.until(ctx, t, "pr", func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == v1alpha1.RunSucceeded })
	stand(t, w, "fails=Succeeded child=Succeeded")
	s.maps(ctx, t, "pr-instead pr-child")
}

func (s *stage) pausesIgnore(ctx context.Context, t *testing.T) {
	s.paused(ctx, t, "pi")
	s.command(ctx, t, "pi", workflow.Decision{Task: "fails", Action: workflow.ActIgnore, Reason: "it does not matter"})
	w := s.until(ctx, t, "pi", func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == v1alpha1.RunDegraded })
	stand(t, w, "fails=Ignored child=Succeeded")
	s.maps(ctx, t, "pi-child")
}

func (s *stage) pausesIgnoreChildren(ctx context.Context, t *testing.T) {
	s.paused(ctx, t, "pc")
	s.command(ctx, t, "pc", workflow.Decision{Task: "fails", Action: workflow.ActIgnoreChildren, Reason: "not today"})
	w := s.until(ctx, t, "pc", func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == v1alpha1.RunDegraded })
	stand(t, w, "fails=Failed child=Skipped")
	s.maps(ctx, t, "!pc-child")
}

// alternative checks that the failure of a task starts another branch, and that both branches join again.
func (s *stage) alternative(ctx context.Context, t *testing.T) {
	w := s.run(ctx, t, "alternative", v1alpha1.RunSucceeded, "tasks:\n"+
		apply("fails", pod("alt", crashing), "")+
		apply("direct", configMap("alt-direct", "1"), ", needs: [fails]")+
		apply("instead", configMap("alt-instead", "1"), ", needs: [{task: fails, on: Failure}]")+
		apply("joined", configMap("alt-joined", "1"), ", needs: [{task: direct, optional: true}, {task: instead, optional: true}]"))
	stand(t, w, "fails=Failed direct=Skipped instead=Succeeded joined=Succeeded")
	if got := scuted.TaskOf(w, "fails").Verdict; got != v1alpha1.VerdictHandled {
		t.Errorf("verdict %s, want Handled", got)
	}
	s.maps(ctx, t, "!alt-direct alt-instead alt-joined")
}

func (s *stage) timeouts(ctx context.Context, t *testing.T) {
	w := s.run(ctx, t, "attempt-timeout", v1alpha1.RunAborted, "tasks:\n"+
		apply("slow", pod("slow-1", ""), ", timeout: 5s, retry: {max: 1, delay: 100ms}")) // long enough to see the Pod
	if got := scuted.TaskOf(w, "slow"); got.Attempts != 2 || !strings.Contains(got.Message, "the attempt timed out") || !strings.Contains(got.Message, "slow-1") {
		t.Errorf("task slow = %+v, want 2 attempts that timed out", got)
	}
	w = s.run(ctx, t, "total-timeout", v1alpha1.RunAborted, "tasks:\n"+
		apply("slow", pod("slow-2", ""), ", timeout: 1s, totalTimeout: 2500ms, retry: {max: 100, delay: 100ms, maxDelay: 100ms}"))
	if got := scuted.TaskOf(w, "slow"); got.Attempts > 4 || !strings.Contains(got.Message, "totalTimeout has passed") && !strings.Contains(got.Message, "no time is left") {
		t.Errorf("task slow = %+v, want its total time to end it", got)
	}
	s.create(ctx, t, "edge-timeout", "tasks:\n"+
		apply("slow", pod("slow-3", ""), "")+
		apply("impatient", configMap("et-impatient", "1"), ", needs: [{task: slow, timeout: 1s}]")+
		apply("patient", configMap("et-patient", "1"), ", needs: [slow]"))
	s.until(ctx, t, "edge-timeout", func(w *v1alpha1.WorkflowRun) bool { return scuted.TaskOf(w, "impatient").Phase == v1alpha1.TaskSkipped })
	s.kubelet.set("slow-3", isReady)
	stand(t, s.rests(ctx, t, "edge-timeout", v1alpha1.RunDegraded), "slow=Succeeded impatient=Skipped patient=Succeeded")
	s.maps(ctx, t, "!et-impatient et-patient")
}

// policies checks that a task's own policy overrides that of its kind, which overrides that of the workflow.
func (s *stage) policies(ctx context.Context, t *testing.T) {
	w := s.run(ctx, t, "policies", v1alpha1.RunDegraded, "failurePolicy: Rollback\npolicies: [{kind: Apply, failurePolicy: Ignore}]\ntasks:\n"+
		apply("of-kind", pod("po-kind", crashing), "")+apply("child", configMap("po-child", "1"), ", needs: [of-kind]")+
		apply("own", pod("po-own", crashing), ", failurePolicy: IgnoreChildren")+apply("skipped", configMap("po-skipped", "1"), ", needs: [own]"))
	stand(t, w, "of-kind=Ignored child=Succeeded own=Failed skipped=Skipped")
	s.run(ctx, t, "policy-of-run", v1alpha1.RunRolledBack, "failurePolicy: Rollback\npolicies: [{kind: Apply, failurePolicy: Ignore}]\ntasks:\n"+
		apply("a", configMap("pw-a", "1"), "")+
		"- {name: waits, kind: Wait, needs: [a], timeout: 1s, with: {object: {apiVersion: v1, kind: ConfigMap, name: nowhere}, for: ready}}\n")
	s.maps(ctx, t, "!pw-a")
}

func pause(ctx context.Context, t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	case <-time.After(d):
	}
}
