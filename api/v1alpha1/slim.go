package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Slim drops from an object what the daemon does not need of it in a cache of all of them: annotations that are not scute's, managed fields, and a spec of more
// than SpecBytes, which then counts as one that cannot be read. What is written back of such an object must be a patch of what
// differs.
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
			unread.Spec = &UnreadablePart{Field: "spec", Problem: fmt.Sprintf("it takes %d KiB, and may take %d KiB: make it smaller, or several of them", len(data)>>10, SpecBytes>>10)}
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

// SlimMeta drops the parts of the metadata that may take any size: labels and owners, if they take more than metaBytes, and then all finalizers but the
// first of scute's.
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

// size returns the length of a part of the metadata as JSON, in bytes.
func size(part any) int {
	data, _ := json.Marshal(part) // never fails
	return len(data)
}

const (
	// metaBytes bounds the annotations, the labels, the owners and the finalizers that Slim retains: each of them has a few.
	metaBytes = 16 << 10
	// ownFinalizers is how many finalizers with the prefix of scute's SlimMeta retains: scute sets one or two.
	ownFinalizers = 16
	// SpecBytes is what the spec of a RepairPolicy, Pause, Move or BackupSchedule may take: the daemon retains all of them in memory.
	SpecBytes = 128 << 10
	// annotationBytes bounds an annotation that Slim retains.
	annotationBytes = 4 << 10
)
