package trust

import (
	"math"
	"strconv"
)

const (
	// LeaseName is the Lease that makes one daemon of many act.
	LeaseName = "scuted.scute.dev"
	// LeaseNamespace is where it is: one for a management cluster, whichever namespaces scute is installed in.
	LeaseNamespace = "kube-system"

	// logIDAnnotation on the Lease is Mark.LogID.
	logIDAnnotation = "scute.dev/log-id"
	// sequenceAnnotation on the Lease is Mark.Sequence.
	sequenceAnnotation = "scute.dev/log-sequence"
	// ReconciledAnnotation on the Lease is Marks.Reconciled.
	ReconciledAnnotation = "scute.dev/log-reconciled"
	// InstallationAnnotation is the namespace of the installation that holds the Lease.
	InstallationAnnotation = "scute.dev/installation"
	// HolderLogAnnotation is the log of who holds the Lease.
	HolderLogAnnotation = "scute.dev/holder-log-id"
	// OfferedAnnotation is the holder of the Lease if it cannot reach its log. A process that can writes the same name into WantedAnnotation, and
	// the holder gives up the Lease. Names of earlier holders, which an older version leaves there, count for nothing.
	OfferedAnnotation = "scute.dev/log-unreachable"
	// WantedAnnotation is the answer to OfferedAnnotation.
	WantedAnnotation = "scute.dev/log-reached"
)

// MarkOf is the mark in the annotations of the Lease. A sequence that cannot be read is as high as can be: it stops the daemon,
// and a human looks.
func MarkOf(annotations map[string]string) Mark {
	m := Mark{LogID: annotations[logIDAnnotation]}
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

// WriteMark puts the mark into the annotations of the Lease.
func WriteMark(annotations map[string]string, m Mark) {
	annotations[logIDAnnotation], annotations[sequenceAnnotation] = m.LogID, strconv.FormatUint(m.Sequence, 10)
}
