package trust

import (
	"math"
	"strconv"
)

const (
	// LeaseName is the name of the Lease that elects the leader among the daemons.
	LeaseName = "scuted.scute.dev"
	// LeaseNamespace is the namespace of the Lease. A management cluster has one Lease, in whichever namespaces scute is installed.
	LeaseNamespace = "kube-system"

	// logIDAnnotation on the Lease is Mark.LogID.
	logIDAnnotation = "scute.dev/log-id"
	// sequenceAnnotation on the Lease is Mark.Sequence.
	sequenceAnnotation = "scute.dev/log-sequence"
	// ReconciledAnnotation on the Lease is Watermarks.Reconciled.
	ReconciledAnnotation = "scute.dev/log-reconciled"
	// InstallationAnnotation is the namespace of the installation whose daemon holds the Lease.
	InstallationAnnotation = "scute.dev/installation"
	// HolderLogAnnotation is the ID of the log of the Lease's holder.
	HolderLogAnnotation = "scute.dev/holder-log-id"
	// OfferedAnnotation is the holder of the Lease, if the holder cannot reach its log. A process that can reach the log writes the same name into
	// RequestedAnnotation, and the holder releases the Lease. Older versions leave the names of earlier holders there, which are ignored.
	OfferedAnnotation = "scute.dev/log-unreachable"
	// RequestedAnnotation is the response to OfferedAnnotation.
	RequestedAnnotation = "scute.dev/log-reached"
)

// WatermarkOf returns the mark in the annotations of the Lease. It reads an invalid sequence as the highest one, which stops the daemon until an operator
// checks it.
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

// SetWatermark writes the mark into the annotations of the Lease.
func SetWatermark(annotations map[string]string, m Watermark) {
	annotations[logIDAnnotation], annotations[sequenceAnnotation] = m.LogID, strconv.FormatUint(m.Sequence, 10)
}
