package trust

import (
	"context"
	"fmt"
	"math"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube"
)

// Kinds whose statuses have a log ID and a sequence.
const (
	Moves        = "Move"
	WorkflowRuns = "WorkflowRun"
	Pauses       = "Pause"
	Remediations = "SurgeRemediation"
	Schedules    = "BackupSchedule"
)

// pageSize is the number of objects in memory at a time, or fewer if the reader bounds pages
// (guard.BoundPages).
const pageSize = 100

// HighestMark returns the highest status.logSequence among objects of the kinds whose status.logID
// is logID, or zero. reader must read from the API server, not from a cache.
//
// It skips kinds that are not served, and objects whose status cannot be read: they have no
// information about the log and must not prevent its use.
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

// FaultIn returns the fault in the condition Stalled, or nil if the log may be used.
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

const (
	// LeaseName is the name of the Lease that elects the leader among the daemons.
	LeaseName = "scuted.scute.dev"
	// LeaseNamespace is fixed: a management cluster has one Lease, wherever scute is installed.
	LeaseNamespace = "kube-system"

	// logIDAnnotation on the Lease is Watermark.LogID.
	logIDAnnotation = "scute.dev/log-id"
	// sequenceAnnotation on the Lease is Watermark.Sequence.
	sequenceAnnotation = "scute.dev/log-sequence"
	// ReconciledAnnotation on the Lease contains Watermarks.Reconciled.
	ReconciledAnnotation = "scute.dev/log-reconciled"
	// InstallationAnnotation is the namespace of the installation whose daemon holds the Lease.
	InstallationAnnotation = "scute.dev/installation"
	// HolderLogAnnotation is the ID of the log of the Lease's holder.
	HolderLogAnnotation = "scute.dev/holder-log-id"
	// OfferedAnnotation is the holder of the Lease while it cannot reach its log. A process that
	// can reach the log writes the same name into RequestedAnnotation, and the holder releases the
	// Lease. Ignore other names, which older versions left.
	OfferedAnnotation = "scute.dev/log-unreachable"
	// RequestedAnnotation is the response to OfferedAnnotation.
	RequestedAnnotation = "scute.dev/log-reached"
)

// WatermarkOf returns the high-water mark in the Lease's annotations. An invalid sequence counts as
// the highest, which stops the daemon until an operator checks it.
func WatermarkOf(annotations map[string]string) Watermark {
	m := Watermark{LogID: annotations[logIDAnnotation]}
	if m.LogID == "" {
		return m
	}
	n, err := strconv.ParseUint(annotations[sequenceAnnotation], 10, 63)
	if err != nil {
		n = math.MaxInt64
	}
	m.Sequence = n
	return m
}

// SetWatermark writes the high-water mark into the Lease's annotations.
func SetWatermark(annotations map[string]string, m Watermark) {
	annotations[logIDAnnotation], annotations[sequenceAnnotation] = m.LogID, strconv.FormatUint(m.Sequence, 10)
}
