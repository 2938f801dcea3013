package kinds

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/workflow/tasks/job"
)

func makeJob(ctx context.Context, t *testing.T, namespace, name string) {
	t.Helper()
	harness.Must(t, admin().Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}}},
	}))
}

// endJob writes the status as the controller of Jobs would, because the test bed runs no pods.
func endJob(ctx context.Context, t *testing.T, namespace, name, end string) {
	t.Helper()
	now := time.Now().UTC().Format(time.RFC3339)
	before, counts := "SuccessCriteriaMet", fmt.Sprintf(`"succeeded": 1, "completionTime": %q,`, now)
	if end == "Failed" {
		before, counts = "FailureTarget", `"failed": 1,`
	}
	condition := func(name string) string {
		return fmt.Sprintf(`{"type": %q, "status": "True", "reason": "ByTest", "message": "set by hand", "lastTransitionTime": %q}`, name, now)
	}
	status := fmt.Sprintf(`{"status": {"startTime": %q, %s "uncountedTerminatedPods": {}, "conditions": [%s, %s]}}`, now, counts, condition(before), condition(end))
	harness.Must(t, admin().Status().Patch(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, client.RawPatch(types.MergePatchType, []byte(status))))
}

func jobStep(t *testing.T, namespace string) *step {
	t.Helper()
	return &step{
		t: t, kind: &job.Kind{Clusters: clusters(true)}, namespace: namespace, name: "check", dir: t.TempDir(),
		with: `{"image": "registry.example.com/check:1", "command": ["check"]}`,
	}
}

// jobs waits until a namespace has count Jobs, and returns them.
func jobs(ctx context.Context, t *testing.T, namespace string, count int) []batchv1.Job {
	t.Helper()
	var list batchv1.JobList
	eventually(ctx, t, fmt.Sprintf("there are %d Jobs", count), func() bool {
		harness.Must(t, admin().List(ctx, &list, client.InNamespace(namespace)))
		return len(list.Items) == count
	})
	return list.Items
}

// TestJob checks that a failed Job is followed by another one, that a Job of an earlier attempt is waited for, and that
// the undo deletes all of them.
func TestJob(t *testing.T) {
	ctx := harness.Deadline(t, 2*time.Minute)
	ns := namespace(ctx, t, "job")
	s := jobStep(t, ns)
	attempt := func(ctx context.Context) chan error {
		ended := make(chan error, 1)
		go func() { ended <- s.run(ctx) }()
		return ended
	}

	ended := attempt(ctx)
	first := jobs(ctx, t, ns, 1)[0]
	if !strings.HasPrefix(first.Name, "check-") || !strings.HasSuffix(first.Name, "-1") || *first.Spec.BackoffLimit != 0 {
		t.Errorf("created %s: %v", first.Name, first.Spec)
	}
	endJob(ctx, t, ns, first.Name, "Failed")
	mentions(t, <-ended, first.Name+" has failed: ByTest: set by hand", "its pods have no logs")

	dying, die := context.WithCancel(ctx)
	ended = attempt(dying)
	jobs(ctx, t, ns, 2)
	s.saw(ctx, "-2 is running")
	die()
	mentions(t, <-ended, context.Canceled.Error())

	ended = attempt(ctx)
	s.saw(ctx, "is running")
	s.unrecorded = true // the process crashes before the success is in the log; the next attempt adopts the Job
	for _, j := range jobs(ctx, t, ns, 2) {
		if j.Name != first.Name {
			endJob(ctx, t, ns, j.Name, "Complete")
		}
	}
	harness.Must(t, <-ended)
	s.unrecorded = false
	harness.Must(t, s.run(ctx))
	jobs(ctx, t, ns, 2)
	if !strings.Contains(string(s.output), `-2"`) || !strings.Contains(string(s.output), `"succeeded":1`) {
		t.Errorf("output = %s, want the second Job with one success", s.output)
	}

	// If a task that succeeded runs again (always: true), it creates another Job. A Job that exceeds the timeout is
	// deleted.
	late := expires(ctx)
	s.says = nil
	ended = attempt(late)
	s.saw(ctx, " is running")
	jobs(ctx, t, ns, 3)
	close(late.over)
	mentions(t, <-ended, context.DeadlineExceeded.Error())
	jobs(ctx, t, ns, 2)

	makeJob(ctx, t, ns, "theirs")
	for range 2 {
		harness.Must(t, s.takeBack(ctx))
	}
	if left := jobs(ctx, t, ns, 1); left[0].Name != "theirs" {
		t.Errorf("remaining Job = %s, want theirs", left[0].Name)
	}
}

// TestJobCorrected cancels an attempt while its Job runs, and retries it with other inputs. The end of the first Job
// does not count as that of the second.
func TestJobCorrected(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "job-corrected")
	s := jobStep(t, ns)
	for _, ended := range []bool{false, true} { // whether it ends, unobserved, before the next attempt
		dying, die := context.WithCancel(ctx)
		cancelled := make(chan error, 1)
		go func() { cancelled <- s.run(dying) }()
		wrong := jobs(ctx, t, ns, 1)[0]
		s.saw(ctx, wrong.Name+" is running")
		die()
		mentions(t, <-cancelled, context.Canceled.Error())
		if ended {
			endJob(ctx, t, ns, wrong.Name, "Complete")
		}
		s.with = strings.Replace(s.with, "check:1", "check:1.1", 1)
		done := make(chan error, 1)
		go func() { done <- s.run(ctx) }()
		var right batchv1.Job
		eventually(ctx, t, "there is a Job with the other inputs alone", func() bool {
			list := jobs(ctx, t, ns, 1)
			right = list[0]
			return right.UID != wrong.UID
		})
		if image := right.Spec.Template.Spec.Containers[0].Image; !strings.Contains(s.with, `"`+image+`"`) {
			t.Errorf("image of the Job = %s, want that of the corrected inputs", image)
		}
		endJob(ctx, t, ns, right.Name, "Complete")
		harness.Must(t, <-done)
		if !strings.Contains(string(s.output), right.Name) {
			t.Errorf("output = %s, want the corrected Job", s.output)
		}
		harness.Must(t, s.takeBack(ctx))
	}
}

// TestJobTemplate checks that an error of the API server about the template is final.
func TestJobTemplate(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "job-template")
	s := jobStep(t, ns)
	s.with = `{"template": {"backoffLimit": -1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}`
	isFinal(t, s.run(ctx), "spec.backoffLimit")
	for with, says := range map[string]string{
		`{}`:                                  "set either image",
		`{"image": "i", "command": "check"}`:  "command",
		`{"template": {}}`:                    "template.template.spec.containers",
		`{"image": "i", "restart": "Always"}`: "restart",
	} {
		problems := s.kind.Validate(json.RawMessage(with))
		if len(problems) == 0 || !strings.Contains(problems[0].String(), says) {
			t.Errorf("Validate(%s) = %v, want %q", with, problems, says)
		}
	}
}
