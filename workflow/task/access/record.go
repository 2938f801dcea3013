package access

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// MarkAnnotation holds the key of the step that created an object, so that its undo deletes nothing else.
const MarkAnnotation = "scute.dev/run"

// MarkOf is the key of the step that created an object; "" if none did.
func MarkOf(u *unstructured.Unstructured) string { return u.GetAnnotations()[MarkAnnotation] }

// The limits of what a task keeps in the log about objects.
const (
	// ObjectsLimit is how many objects one record has room for, NamedLimit how many one output names.
	ObjectsLimit = 2000
	NamedLimit   = 200
	// RecordLimit bounds the earlier states in one record, which is one message of the log.
	RecordLimit = 256 << 10
)

// Why the earlier state of an object is not recorded.
const (
	WithheldSecret = "a Secret's content is never recorded"
	WithheldSize   = "its earlier state is too large to record"
)

// ContentOf is an object without what the server keeps about it.
func ContentOf(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	StripServerFields(u)
	return u.Object
}

// StripServerFields takes off what only the server writes.
func StripServerFields(u *unstructured.Unstructured) {
	delete(u.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
}
