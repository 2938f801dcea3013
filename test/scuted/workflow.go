package scuted

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
)

// NewWorkflowRun returns a WorkflowRun with a spec in YAML, for a ServiceAccount of its namespace. It does not create
// it.
func NewWorkflowRun(namespace, name, account, spec string) (*v1alpha1.WorkflowRun, error) {
	w := &v1alpha1.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &w.Spec); err != nil {
		return nil, fmt.Errorf("reading the spec of %s: %w", name, err)
	}
	if account != "" {
		w.Spec.ServiceAccountName = account
	}
	return w, nil
}

// WaitWorkflowRun polls a WorkflowRun until done returns true. The error has its last status.
func (in *Installation) WaitWorkflowRun(ctx context.Context, namespace, name string, done func(*v1alpha1.WorkflowRun) bool) (*v1alpha1.WorkflowRun, error) {
	c, err := in.Client()
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	w := &v1alpha1.WorkflowRun{}
	var last error
	for {
		if last = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, w); last == nil && done(w) {
			return w, nil
		}
		select {
		case <-ctx.Done():
			return w, fmt.Errorf("waiting for WorkflowRun %s/%s: %w: phase %q, %s\n%s",
				namespace, name, errors.Join(ctx.Err(), last), w.Status.Phase, w.Status.Message, Tasks(w))
		case <-tick.C:
		}
	}
}

// Rests reports whether a run does not continue by itself.
func Rests(w *v1alpha1.WorkflowRun) bool {
	switch w.Status.Phase {
	case "", v1alpha1.RunPending, v1alpha1.RunRunning, v1alpha1.RunPartiallyPaused, v1alpha1.RunRollingBack:
		return false
	default:
		return true
	}
}

// Tasks returns the statuses of the tasks, one per line.
func Tasks(w *v1alpha1.WorkflowRun) string {
	var s string
	for i := range w.Status.Tasks {
		t := &w.Status.Tasks[i]
		s += fmt.Sprintf("  %s: %s %s, %d attempts: %s\n", t.Name, t.Phase, t.Verdict, t.Attempts, t.Message)
	}
	return s
}

// TaskOf returns the status of one task, or the zero value.
func TaskOf(w *v1alpha1.WorkflowRun, name string) v1alpha1.TaskStatus {
	for i := range w.Status.Tasks {
		if w.Status.Tasks[i].Name == name {
			return w.Status.Tasks[i]
		}
	}
	return v1alpha1.TaskStatus{}
}
