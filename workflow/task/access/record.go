package access

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/object"
)

// StepKeyAnnotation contains the key of the step that created an object, so that an undo deletes
// only objects of its step.
const StepKeyAnnotation = "scute.dev/run"

// StepKeyOf returns the key of the step that created an object; "" if no step did.
func StepKeyOf(u *unstructured.Unstructured) string { return u.GetAnnotations()[StepKeyAnnotation] }

// Limits of what a task records in the log about objects.
const (
	// MaxObjects limits the number of objects in a record. MaxNamedObjects limits the number of
	// objects that an output names.
	MaxObjects      = 2000
	MaxNamedObjects = 200
	// MaxRecordBytes limits the bytes of earlier states of objects in a record, because the record is
	// one message of the log.
	MaxRecordBytes = 256 << 10
)

// The reasons why an object's earlier state is not recorded.
const (
	WithheldSecret = "a Secret's content is never recorded"
	WithheldSize   = "its earlier state is too large to record"
)

// ContentOf returns a copy of an object without the fields that only the server writes.
func ContentOf(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	object.StripServerFields(u)
	return u.Object
}
