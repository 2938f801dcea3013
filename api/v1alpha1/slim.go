package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Slim deletes the parts of an object that the daemon does not need in its cache: annotations of
// other programs, large annotations, managed fields, and a spec of more than SpecBytes, which it
// reports as unreadable. Write such an object back only as a patch.
func Slim(o metav1.Object) {
	o.SetManagedFields(nil)
	annotations := o.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, value string) bool {
		return !strings.HasPrefix(key, "scute.dev/") || len(value) > annotationBytes
	})
	if size(annotations) > metaBytes {
		annotations = nil
	}
	o.SetAnnotations(annotations)
	SlimMeta(o)
	refuse := func(spec any, empty func(), unread *Unreadable) {
		if data, err := json.Marshal(spec); err == nil && len(data) > SpecBytes {
			empty()
			unread.Spec = &UnreadablePart{Field: "spec", Problem: fmt.Sprintf("it has %d KiB, and at most %d KiB are allowed: make it smaller, or create several objects", len(data)>>10, SpecBytes>>10)}
		} else if unread.Spec != nil {
			unread.Spec.Raw = nil
		}
	}
	switch o := o.(type) {
	case *RepairPolicy:
		refuse(o.Spec, func() { o.Spec = RepairPolicySpec{} }, &o.Unreadable)
	case *Pause:
		refuse(o.Spec, func() { o.Spec = PauseSpec{} }, &o.Unreadable)
	case *Move:
		refuse(o.Spec, func() { o.Spec = MoveSpec{} }, &o.Unreadable)
	case *BackupSchedule:
		refuse(o.Spec, func() { o.Spec = BackupScheduleSpec{} }, &o.Unreadable)
	}
}

// SlimMeta deletes labels and owner references of more than metaBytes. Of finalizers of more than
// metaBytes, it keeps only the first ownFinalizers of scute.
func SlimMeta(o metav1.Object) {
	if size(o.GetLabels()) > metaBytes {
		o.SetLabels(nil)
	}
	if size(o.GetOwnerReferences()) > metaBytes {
		o.SetOwnerReferences(nil)
	}
	if size(o.GetFinalizers()) > metaBytes {
		own := slices.DeleteFunc(o.GetFinalizers(), func(name string) bool { return !strings.HasPrefix(name, "scute.dev/") })
		o.SetFinalizers(slices.Clone(own[:min(len(own), ownFinalizers)]))
	}
}

// size returns the length as JSON, in bytes.
func size(part any) int {
	data, _ := json.Marshal(part) // never fails
	return len(data)
}

const (
	// metaBytes bounds the annotations, the labels, the owner references and the finalizers that
	// Slim keeps. Each is usually far smaller.
	metaBytes = 16 << 10
	// ownFinalizers bounds the finalizers of scute that SlimMeta keeps. scute sets one or two.
	ownFinalizers = 16
	// SpecBytes bounds the spec of a RepairPolicy, Pause, Move or BackupSchedule, because the
	// daemon keeps all of them in memory.
	SpecBytes = 128 << 10
	// annotationBytes bounds each annotation that Slim keeps.
	annotationBytes = 4 << 10
)
