package access

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/internal/redact"
	"scute.dev/kube/settled"
	"scute.dev/view"
	"scute.dev/workflow/task"
)

// UnsettledReason returns why an object is not settled, or "". An object of a Cluster API kind that
// has machines must be rolled out. Every other object must be ready.
func (cl *Cluster) UnsettledReason(ctx context.Context, ref ObjectRef, u *unstructured.Unstructured) (missing string, err error) {
	kind := ref.GVK().GroupKind()
	if u == nil || !settled.Supports(kind) {
		return UnreadyReason(ref, u)
	}
	state, err := settled.Read(ctx, cl.Client, kind, client.ObjectKeyFromObject(u))
	switch {
	case errors.Is(err, settled.ErrVersion):
		return "", task.Final(fmt.Errorf("%s: %w", ref, err))
	case err != nil:
		return "", FinalIfRefused(err)
	default:
		return redact.Message(view.First(state.Problems())), nil
	}
}

// UnreadyReason returns why an object is not ready according to kstatus, or "". It returns an error
// if the object has failed.
func UnreadyReason(ref ObjectRef, u *unstructured.Unstructured) (missing string, err error) {
	if u == nil {
		return ref.String() + " does not exist", nil
	}
	if ref.isKind("batch", "Job") { // kstatus treats a started Job as ready
		switch end, why := JobEnd(u); {
		case end == batchv1.JobFailed:
			return "", FailedObject(fmt.Errorf("%s has failed: %s", ref, redact.Message(why)))
		case end == "" && u.GetDeletionTimestamp() == nil:
			return ref.String() + " is not complete: " + JobPods(u), nil
		}
	}
	result, err := status.Compute(u)
	if err != nil {
		return "", FailedObject(fmt.Errorf("%s: its status cannot be read: %w", ref, err))
	}
	message := redact.Message(result.Message)
	switch result.Status {
	case status.CurrentStatus:
		return "", nil
	case status.FailedStatus:
		return "", FailedObject(fmt.Errorf("%s has failed: %s", ref, message))
	case status.TerminatingStatus:
		return ref.String() + " is being deleted", nil
	default:
		return fmt.Sprintf("%s is not ready: %s", ref, message), nil
	}
}
