package trust

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube"
)

// Kinds whose statuses contain the ID and a sequence of a log.
const (
	Moves        = "Move"
	WorkflowRuns = "WorkflowRun"
	Pauses       = "Pause"
	Remediations = "SurgeRemediation"
	Schedules    = "BackupSchedule"
)

// pageSize is the number of objects in memory at a time. It may be fewer if the pages of the reader are bounded (guard.BoundPages).
const pageSize = 100

// HighestMark returns the highest status.logSequence of the objects of the kinds whose status.logID is logID, or the zero Watermark if there is none. reader must
// read from the API server and not from a cache.
//
// It skips a kind that the API server does not serve, and an object whose status cannot be read. Such an object has no information about the log, and
// must not prevent the use of the log.
func HighestMark(ctx context.Context, reader client.Reader, logID string, kinds ...string) (Watermark, error) {
	var highest int64
	for _, kind := range kinds {
		found, err := highestOf(ctx, reader, logID, kind)
		if err != nil {
			return Watermark{}, fmt.Errorf("reading the log's high-water mark from the statuses of %ss: %w", kind, err)
		}
		highest = max(highest, found)
	}
	if highest <= 0 {
		return Watermark{}, nil
	}
	return Watermark{LogID: logID, Sequence: uint64(highest)}, nil
}

func highestOf(ctx context.Context, reader client.Reader, logID, kind string) (highest int64, err error) {
	err = kube.EachPage("list "+kind+"s", func(o metav1.ListOptions) (string, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(kind + "List"))
		err := reader.List(ctx, list, client.Limit(min(o.Limit, pageSize)), client.Continue(o.Continue))
		for i := range list.Items {
			highest = max(highest, sequence(list.Items[i].Object, logID))
		}
		return list.GetContinue(), err
	})
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		err = nil
	}
	return highest, err
}

// sequence returns status.logSequence of an object whose status names the log, and 0 for other objects.
func sequence(object map[string]any, logID string) int64 {
	id, _, err := unstructured.NestedString(object, "status", "logID")
	if err != nil || id != logID {
		return 0
	}
	seq, _, err := unstructured.NestedInt64(object, "status", "logSequence")
	if err != nil {
		return 0
	}
	return seq
}

// FaultIn returns the fault in the condition Stalled if the event log may not be used, and nil otherwise.
func FaultIn(list []metav1.Condition) *Fault {
	c := meta.FindStatusCondition(list, v1alpha1.ConditionStalled)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	switch reason := Reason(c.Reason); reason {
	case WentBack, Replaced, AnotherCluster, Newer:
		return &Fault{Reason: reason, Message: c.Message}
	default:
		return nil
	}
}
