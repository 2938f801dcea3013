package apply

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/view"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// observe decides which objects must be written, and completes the record. It writes nothing.
func (w *applying) observe(ctx context.Context) error {
	changing := make(map[schema.GroupKind]bool) // kinds whose definition will be written
	for _, item := range w.items {
		item.live, item.needsWrite, item.deferred = nil, false, false
		unstructured.RemoveNestedField(item.want.Object, "metadata", "annotations", access.StepKeyAnnotation) // set only on creation
		live, err := w.getSettled(ctx, item.ref)
		if err != nil {
			return err
		}
		entry := w.record.find(item.ref)
		switch {
		case live == nil:
			// If an earlier attempt found the object, another client has deleted it since then.
			entry = w.record.entry(item.ref)
			*entry = recordEntry{ObjectRef: item.ref, Created: true}
			annotations.AddAnnotations(item.want, map[string]string{access.StepKeyAnnotation: w.call.StepKey()})
			item.needsWrite = true
			continue
		case access.StepKeyOf(live) == w.call.StepKey():
			// An earlier attempt of this step created the object.
			entry = w.record.entry(item.ref)
			*entry = recordEntry{ObjectRef: item.ref, Created: true}
		case entry == nil && w.with.Adopt != nil && !*w.with.Adopt:
			return task.Final(fmt.Errorf("%s already exists: delete it, or set with.adopt: true to take it over", item.ref))
		default:
			entry = w.record.entry(item.ref)
			if entry.Created || entry.UID != live.GetUID() {
				// Another client created the object after an earlier attempt, so the undo must not delete it.
				*entry = recordEntry{ObjectRef: item.ref, UID: live.GetUID(), Managed: isManaged(live)}
			}
		}
		if changing[item.ref.GVK().GroupKind()] { // the object may have fields that only the new definition contains
			item.live, item.uid, item.needsWrite, item.deferred = live, live.GetUID(), true, true
			continue
		}
		if err := w.compare(ctx, item, entry, live); err != nil {
			return err
		}
		if item.needsWrite && item.ref.IsDefinition() {
			for kind := range scopesOf([]*unstructured.Unstructured{item.want}) {
				changing[kind] = true
			}
		}
	}
	return nil
}

// compareDeferred compares an object after the CustomResourceDefinition of its kind was written,
// and records the object's state.
func (w *applying) compareDeferred(ctx context.Context, item *workItem) error {
	item.needsWrite, item.deferred = false, false
	live, err := w.getSettled(ctx, item.ref)
	if err == nil && live == nil {
		return fmt.Errorf("%s %w", item.ref, errChangedByOther)
	}
	if err == nil {
		err = w.compare(ctx, item, w.record.entry(item.ref), live)
	}
	if err != nil || !item.needsWrite {
		return err
	}
	return w.call.Prepare(ctx, w.record, false)
}

// getSettled reads an object. If the object is being deleted, it first waits until it is gone. It
// returns nil if the object does not exist.
func (w *applying) getSettled(ctx context.Context, ref access.ObjectRef) (*unstructured.Unstructured, error) {
	live, err := w.cluster.Find(ctx, ref)
	if err != nil {
		return nil, access.FinalIfObjectRefused(ref, err)
	}
	if live == nil || live.GetDeletionTimestamp() == nil {
		return live, nil
	}
	if err := w.cluster.Remove(ctx, w.call, ref, live.GetUID(), metav1.DeletePropagationBackground, true); err != nil {
		return nil, err
	}
	if err := w.call.ReacquireSlot(ctx); err != nil {
		return nil, err
	}
	live, err = w.cluster.Find(ctx, ref)
	return live, access.FinalIfObjectRefused(ref, err)
}

// compare determines with a dry run whether applying an object would change it, and records the
// change.
func (w *applying) compare(ctx context.Context, item *workItem, entry *recordEntry, live *unstructured.Unstructured) error {
	if m := access.StepKeyOf(live); m != "" {
		annotations.AddAnnotations(item.want, map[string]string{access.StepKeyAnnotation: m}) // so that the step that created it still finds it
	}
	item.live, item.uid = live, live.GetUID()
	then, err := w.apply(ctx, item, client.DryRunAll)
	if err != nil {
		return err
	}
	if reflect.DeepEqual(access.ContentOf(live), access.ContentOf(then)) {
		return nil
	}
	item.needsWrite = true
	if item.removed = removedFields(live, item.want); len(item.removed) > 0 {
		w.call.Progress(fmt.Sprintf("%s loses %s: an earlier Apply of scute set it, and the manifest omits it", item.ref, view.First(item.removed)))
	}
	if entry.Created {
		return nil
	}
	if err := w.record.change(entry, live, then); err != nil {
		return err
	}
	if entry.Withheld != "" {
		w.call.Progress(fmt.Sprintf("%s cannot be restored by a rollback: %s", item.ref, entry.Withheld))
	}
	return nil
}

// neverCurrent is a resourceVersion that no object has. With it, a write conflicts if the object
// already exists. Field ownership would not cause a conflict, because other runs have the same
// field manager.
const neverCurrent = "1"

// apply applies an object. If observe found the object, the request contains its UID, so that it
// neither changes another object with this name nor creates the object again.
func (w *applying) apply(ctx context.Context, item *workItem, options ...client.ApplyOption) (*unstructured.Unstructured, error) {
	options = append(options, client.FieldOwner(kube.FieldManager))
	if w.with.Force {
		options = append(options, client.ForceOwnership)
	}
	var u *unstructured.Unstructured
	err := w.cluster.Kube.Do(ctx, "apply "+item.ref.String(), func(ctx context.Context) error {
		u = item.want.DeepCopy()
		if item.live != nil {
			u.SetUID(item.live.GetUID())
		} else {
			u.SetResourceVersion(neverCurrent)
		}
		return w.cluster.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...)
	})
	if err != nil {
		return nil, access.FinalIfObjectRefused(item.ref, err)
	}
	return u, nil
}

func isManaged(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(u.GetManagedFields(), isOwnEntry)
}

func isOwnEntry(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == kube.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}

// hasOtherManagers reports whether an object has another field manager than scute. If so, it
// existed before the task seemed to create it.
func hasOtherManagers(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager != kube.FieldManager && e.Subresource == ""
	})
}

const clusterScoped = "Cluster"

func scopesOf(objects []*unstructured.Unstructured) map[schema.GroupKind]string {
	scopes := make(map[schema.GroupKind]string)
	for _, u := range objects {
		if !access.RefOf(u).IsDefinition() {
			continue
		}
		kind := schema.GroupKind{Group: object.Text(u, "spec", "group"), Kind: object.Text(u, "spec", "names", "kind")}
		scopes[kind] = object.Text(u, "spec", "scope")
	}
	return scopes
}

func applyOrder(ref access.ObjectRef) int {
	switch {
	case ref.IsNamespace():
		return 0
	case ref.IsDefinition():
		return 1
	default:
		return 2
	}
}
