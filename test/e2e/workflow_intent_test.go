package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
	"scute.dev/workflow"
)

// told checks that Kubernetes events with these reasons are sent for a WorkflowRun.
func (s *stage) told(ctx context.Context, t *testing.T, name string, reasons ...string) {
	t.Helper()
	var missing []string
	for ctx.Err() == nil { // events are sent asynchronously
		var list eventsv1.EventList
		harness.Must(t, shared.blue.Side.Client().List(ctx, &list, inNamespace(s.ns)))
		missing = slices.DeleteFunc(slices.Clone(reasons), func(reason string) bool {
			return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name == name && e.Reason == reason })
		})
		if len(missing) == 0 {
			return
		}
		pause(ctx, t, 100*time.Millisecond)
	}
	t.Errorf("%s: no event has the reasons %v", name, missing)
}

// forbidden checks that an account without permissions causes a final error that names the missing permission.
func (s *stage) forbidden(ctx context.Context, t *testing.T) {
	w, err := scuted.NewWorkflowRun(s.ns, "forbidden", "nobody", "tasks:\n"+apply("a", configMap("forbidden", "1"), ", retry: {max: 5}"))
	harness.Must(t, err)
	harness.Must(t, s.admin.Create(ctx, w))
	w = s.rests(ctx, t, "forbidden", v1alpha1.RunAborted)
	got := scuted.TaskOf(w, "a")
	for _, part := range []string{"system:serviceaccount:workflows:nobody", "cannot get resource", "configmaps", "grant this permission"} {
		if !strings.Contains(got.Message, part) {
			t.Errorf("message lacks %q: %s", part, got.Message)
		}
	}
	if got.Attempts != 1 {
		t.Errorf("%d attempts, want 1, because a retry cannot succeed", got.Attempts)
	}
	if c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionStalled); c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != w.Generation {
		t.Errorf("Stalled = %+v, want True for the current generation", c)
	}
}

func (s *stage) setSuspend(ctx context.Context, t *testing.T, name, value string) {
	t.Helper()
	w := &v1alpha1.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	harness.Must(t, s.admin.Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":`+value+`}}`))))
}

// suspends checks that no task starts while a run is suspended, and that running tasks finish.
func (s *stage) suspends(ctx context.Context, t *testing.T) {
	s.create(ctx, t, "suspends", "suspend: true\ntasks:\n"+apply("a", pod("su", ""), "")+apply("b", configMap("su-b", "1"), ", needs: [a]"))
	w := s.until(ctx, t, "suspends", func(w *v1alpha1.WorkflowRun) bool {
		return strings.Contains(w.Status.Message, "suspended before it started")
	})
	if w.Status.RunID != "" || s.exists(ctx, t, &corev1.Pod{}, "su") {
		t.Error("the suspended run started")
	}
	s.setSuspend(ctx, t, "suspends", "false")
	s.until(ctx, t, "suspends", func(w *v1alpha1.WorkflowRun) bool { return scuted.TaskOf(w, "a").Phase == v1alpha1.TaskRunning })
	s.setSuspend(ctx, t, "suspends", "true")
	s.until(ctx, t, "suspends", func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == v1alpha1.RunPartiallyPaused })
	s.kubelet.set("su", isReady)
	w = s.rests(ctx, t, "suspends", v1alpha1.RunPaused)
	stand(t, w, "a=Succeeded b=Pending")
	pause(ctx, t, time.Second)
	s.maps(ctx, t, "!su-b")
	s.setSuspend(ctx, t, "suspends", "false")
	s.until(ctx, t, "suspends", func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == v1alpha1.RunSucceeded })
	s.maps(ctx, t, "su-b")
}

// refuses checks that all problems of a manifest are reported at once, and that a started run's spec cannot be changed.
func (s *stage) refuses(ctx context.Context, t *testing.T) {
	w := s.run(ctx, t, "refused", v1alpha1.RunFailed, `
tasks:
- {name: a, kind: Aply, with: {}}
- {name: b, kind: Exec, needs: [nowhere], with: {command: [reboot]}}
- {name: c, kind: Apply, with: {manifest: []}}
- {name: d, kind: Approve, needs: [e], with: {message: ok}}
- {name: e, kind: Approve, needs: [d], with: {message: ok}}
`)
	for _, part := range []string{`unknown kind "Aply"`, "--enable-exec", `there is no task "nowhere"`, "manifest", "nothing was started"} {
		if !strings.Contains(w.Status.Message, part) {
			t.Errorf("message lacks %q:\n%s", part, w.Status.Message)
		}
	}
	if w.Status.RunID != "" {
		t.Errorf("the refused run is in the log as %s", w.Status.RunID)
	}
	s.run(ctx, t, "pinned", v1alpha1.RunSucceeded, "tasks:\n"+apply("a", configMap("pinned", "1"), ""))
	for _, patch := range []string{`{"spec":{"tasks":[{"name":"a","kind":"Apply","with":{"other":1}}]}}`, `{"spec":{"serviceAccountName":"admin"}}`, `{"spec":{"failurePolicy":"Ignore"}}`, `{"spec":{"deadline":"5m"}}`} {
		w := &v1alpha1.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "pinned"}}
		err := s.admin.Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(patch)))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "cannot be changed: create another WorkflowRun") {
			t.Errorf("patch %s = %v, want Invalid", patch, err)
		}
	}
	s.setSuspend(ctx, t, "pinned", "true") // has no effect any more, and is permitted
	harness.Must(t, s.admin.Delete(ctx, w))
	waitGoneWorkflowRun(ctx, t, s, "refused")
}

// deleted checks that a WorkflowRun that is deleted while it runs resumes the Cluster that it paused, and that the
// objects it created stay.
func (s *stage) deleted(ctx context.Context, t *testing.T) {
	shared.cluster(ctx, t, shared.blue, testbed.Tiny(s.ns, "tiny"))
	all := shared.blue.Side.Client()
	s.mayAll(ctx, t, "e2e-"+s.ns)
	w, err := scuted.NewWorkflowRun(s.ns, "deleted", "admin", "tasks:\n- {name: hold, kind: Pause, with: {clusters: [tiny]}}\n"+
		apply("made", configMap("deleted", "1"), ", needs: [hold]")+apply("never", pod("never", ""), ", needs: [made]"))
	harness.Must(t, err)
	harness.Must(t, s.admin.Create(ctx, w))
	s.until(ctx, t, "deleted", func(w *v1alpha1.WorkflowRun) bool {
		return scuted.TaskOf(w, "never").Phase == v1alpha1.TaskRunning && s.exists(ctx, t, &corev1.Pod{}, "never")
	})
	paused := func() bool {
		var c clusterv1.Cluster
		harness.Must(t, all.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: "tiny"}, &c))
		return c.Spec.Paused != nil && *c.Spec.Paused
	}
	if !paused() {
		t.Fatal("the Cluster is not paused")
	}
	harness.Must(t, s.admin.Delete(ctx, w))
	waitGoneWorkflowRun(ctx, t, s, "deleted")
	if paused() {
		t.Error("the Cluster is still paused")
	}
	untouched(t, objects(ctx, t, shared.blue, s.ns))
	s.maps(ctx, t, "deleted")
	if !s.exists(ctx, t, &corev1.Pod{}, "never") {
		t.Error("the Pod that the run created was deleted")
	}
}

// removed checks that a WorkflowRun whose finalizer another client removed disappears at once, and that its run ends
// like the run of a deleted one.
func (s *stage) removed(ctx context.Context, t *testing.T, start func() *scuted.Daemon) {
	shared.cluster(ctx, t, shared.blue, testbed.Tiny(s.ns, "removed"))
	s.mayAll(ctx, t, "e2e-removed-"+s.ns)
	d := start()
	w, err := scuted.NewWorkflowRun(s.ns, "removed", "admin", "tasks:\n- {name: hold, kind: Pause, with: {clusters: [removed]}}\n"+
		apply("waits", pod("removed-pod", ""), ", needs: [hold]")+apply("never", configMap("removed", "1"), ", needs: [waits]"))
	harness.Must(t, err)
	harness.Must(t, s.admin.Create(ctx, w))
	w = s.until(ctx, t, "removed", func(w *v1alpha1.WorkflowRun) bool {
		return scuted.TaskOf(w, "waits").Phase == v1alpha1.TaskRunning && s.exists(ctx, t, &corev1.Pod{}, "removed-pod")
	})
	harness.Must(t, d.Stop(ctx))
	harness.Must(t, s.admin.Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	harness.Must(t, s.admin.Delete(ctx, w))
	harness.Must(t, start().WaitReady(ctx))
	runs := s.open(ctx, t)
	harness.Await(ctx, t, "its run is aborted", func() string {
		state, _, err := runs.State(ctx, w.Status.RunID)
		harness.Must(t, err)
		if phase := workflow.CurrentPhase(state); phase != v1alpha1.RunAborted {
			return "it is " + string(phase)
		}
		return ""
	})
	var c clusterv1.Cluster
	harness.Must(t, shared.blue.Side.Client().Get(ctx, client.ObjectKey{Namespace: s.ns, Name: "removed"}, &c))
	if c.Spec.Paused != nil && *c.Spec.Paused {
		t.Error("the Cluster is still paused")
	}
	s.maps(ctx, t, "!removed")
}

// lifted checks that a pause that a task has removed is not set again when the run is resumed after that task.
func (s *stage) lifted(ctx context.Context, t *testing.T) {
	shared.cluster(ctx, t, shared.blue, testbed.Tiny(s.ns, "lifted"))
	all := shared.blue.Side.Client()
	s.mayAll(ctx, t, "e2e-lifted-"+s.ns)
	w, err := scuted.NewWorkflowRun(s.ns, "lifted", "admin", "tasks:\n- {name: hold, kind: Pause, with: {clusters: [lifted]}}\n"+
		apply("work", configMap("lifted-work", "1"), ", needs: [hold]")+
		"- {name: free, kind: Resume, needs: [work], with: {task: hold}}\n"+
		apply("check", configMap("lifted-check", "1"), ", needs: [free]")+apply("later", pod("lifted-later", crashing), ", needs: [check]"))
	harness.Must(t, err)
	harness.Must(t, s.admin.Create(ctx, w))
	s.rests(ctx, t, "lifted", v1alpha1.RunAborted)
	s.kubelet.set("lifted-later", "") // the Pod stays Pending
	harness.Must(t, s.admin.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "lifted-later"}}, client.GracePeriodSeconds(0)))
	s.command(ctx, t, "lifted", workflow.ResumeRun{Reason: "the Pod is made again"})
	again := func(w *v1alpha1.WorkflowRun) bool {
		later := scuted.TaskOf(w, "later")
		return later.Attempts == 2 && s.exists(ctx, t, &corev1.Pod{}, "lifted-later")
	}
	w = s.until(ctx, t, "lifted", again)
	stand(t, w, "hold=Succeeded work=Succeeded free=Succeeded later=Running")
	var c clusterv1.Cluster
	harness.Must(t, all.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: "lifted"}, &c))
	if c.Spec.Paused != nil && *c.Spec.Paused {
		t.Error("the Cluster is paused again after the task that resumes it")
	}
	if got := scuted.TaskOf(w, "hold").Attempts; got != 1 {
		t.Errorf("the pause was set %d times, want once", got)
	}
	s.kubelet.set("lifted-later", isReady)
	s.rests(ctx, t, "lifted", v1alpha1.RunSucceeded)
	untouched(t, objects(ctx, t, shared.blue, s.ns))
}

func waitGoneWorkflowRun(ctx context.Context, t *testing.T, s *stage, name string) {
	t.Helper()
	for s.exists(ctx, t, &v1alpha1.WorkflowRun{}, name) {
		pause(ctx, t, 100*time.Millisecond)
	}
}

// adopts checks that a WorkflowRun can adopt a run of the log only if the run has its namespace and name.
func (s *stage) adopts(ctx context.Context, t *testing.T) {
	adopt := func(name, id string) {
		w, err := scuted.NewWorkflowRun(s.ns, name, s.account, "tasks:\n"+apply("own", configMap(name+"-own", "1"), ""))
		harness.Must(t, err)
		w.Annotations = map[string]string{"scute.dev/run": id}
		harness.Must(t, s.admin.Create(ctx, w))
	}
	adopt("stolen", s.ns+"/chain/1")
	w := s.rests(ctx, t, "stolen", v1alpha1.RunFailed)
	if !strings.Contains(w.Status.Message, "is not one of workflows/stolen") {
		t.Errorf("message = %s, want one about the foreign run", w.Status.Message)
	}
	id := s.ns + "/adopted/1"
	adopt("adopted", id)
	s.until(ctx, t, "adopted", func(w *v1alpha1.WorkflowRun) bool {
		return strings.Contains(w.Status.Message, "waiting until the log contains run "+id)
	})
	s.request(ctx, t, id, "adopted", "tasks:\n"+apply("pushed", configMap("pushed", "1"), ""))
	w = s.rests(ctx, t, "adopted", v1alpha1.RunSucceeded)
	if w.Status.RunID != id {
		t.Errorf("adopted run %s, want %s", w.Status.RunID, id)
	}
	s.maps(ctx, t, "pushed !adopted-own !stolen-own")
}

// strands checks that a run that needs a disabled task kind reports this in its status, and that its WorkflowRun can be
// deleted.
func (s *stage) strands(ctx context.Context, t *testing.T) {
	w, err := scuted.NewWorkflowRun(s.ns, "strands", s.account, "tasks:\n"+apply("a", configMap("strands", "1"), ""))
	harness.Must(t, err)
	id := s.ns + "/strands/1"
	w.Annotations = map[string]string{"scute.dev/run": id}
	harness.Must(t, s.admin.Create(ctx, w))
	s.request(ctx, t, id, "strands", "tasks:\n- {name: a, kind: Exec, with: {command: [reboot]}}\n")
	w = s.until(ctx, t, "strands", func(w *v1alpha1.WorkflowRun) bool {
		return w.Status.Phase == v1alpha1.RunStranded && strings.Contains(w.Status.Message, "does not support the kinds Exec")
	})
	harness.Must(t, s.admin.Delete(ctx, w))
	waitGoneWorkflowRun(ctx, t, s, "strands")
}
