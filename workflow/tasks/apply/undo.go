package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/view"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Undo deletes the objects that this step created, in reverse order, and restores the fields that
// it changed. If some of this fails, it still undoes the rest before it returns the errors.
func (a *Kind) Undo(ctx context.Context, c *task.Call) error {
	record, err := task.Recorded[record](c)
	if err != nil || len(record.Objects) == 0 {
		return err
	}
	cluster, err := a.Clusters.OpenPinned(ctx, c, record.Cluster)
	if err != nil {
		return err
	}
	objects := outputObjects(c.Output)
	entries := slices.Clone(record.Objects)
	slices.Reverse(entries)
	// Attempts with other inputs may have appended objects, so sort by kind again.
	slices.SortStableFunc(entries, func(a, b *recordEntry) int {
		return cmp.Or(undoOrder(a.ObjectRef)-undoOrder(b.ObjectRef), applyOrder(b.ObjectRef)-applyOrder(a.ObjectRef))
	})
	var failed []error
	stay := make(map[object.Ref]bool)
	for _, e := range entries {
		if err := c.ReacquireSlot(ctx); err != nil { // the previous deletion may have yielded the slot
			return err
		}
		var err error
		switch {
		case stay[e.Ref()]:
		case e.Created:
			err = a.undoCreate(ctx, c, cluster, e, objects[e.ObjectRef].UID)
		case e.isChanged():
			err = a.undoChange(ctx, cluster, e)
		}
		if e.GVK().GroupKind() == clusterClassKind && e.action() != actionNone && (err == nil || task.IsFinal(err)) {
			err = record.keepTemplates(ctx, cluster, e, stay, err)
		}
		if err != nil && !task.IsFinal(err) {
			return err
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...) // final, because all of these errors are
}

var clusterClassKind = schema.GroupKind{Group: object.CoreGroup, Kind: "ClusterClass"} //nolint:gochecknoglobals // Go has no constants of this type

// undoOrder returns the rank of an object in the order of deletion: a Cluster before its
// ClusterClass, and the class before its templates. Cluster API denies the deletion of a class in
// use, but not the deletion of its templates.
func undoOrder(ref access.ObjectRef) int {
	switch kind := ref.GVK().GroupKind(); {
	case kind.Group == object.CoreGroup && kind.Kind == "Cluster":
		return 0
	case kind == clusterClassKind:
		return 1
	default:
		return 2
	}
}

// keepTemplates adds to stay the objects that this step created and to which a remaining
// ClusterClass refers. failed is the error of the undo of this class. If it is nil, the class
// remains because another client changed or recreated it.
func (r *record) keepTemplates(ctx context.Context, cluster *access.Cluster, e *recordEntry, stay map[object.Ref]bool, failed error) error {
	live, err := cluster.Find(ctx, e.ObjectRef)
	if err != nil {
		return access.FinalIfObjectRefused(e.ObjectRef, err)
	}
	if live == nil {
		return failed
	}
	references, kept := object.Observe(live).References, false
	for _, t := range r.Objects {
		if t.Created && slices.ContainsFunc(references, func(r object.Reference) bool { return r.Ref == t.Ref() }) {
			stay[t.Ref()], kept = true, true
		}
	}
	if !kept {
		return failed
	}
	if failed == nil {
		failed = errors.New("it uses them, because another client has changed it since")
	}
	return task.Final(fmt.Errorf("the templates of %s are kept too, because Clusters may use it: decide `retry-undo` when no Cluster uses it or it "+
		"has other templates, or `mark-undone` to keep all: %w", e.ObjectRef, failed))
}

// undoCreate deletes an object that this step created. It keeps an object that has neither the
// step's annotation nor the recorded UID.
func (a *Kind) undoCreate(ctx context.Context, c *task.Call, cluster *access.Cluster, e *recordEntry, uid types.UID) error {
	live, err := cluster.Find(ctx, e.ObjectRef)
	if err != nil {
		return access.FinalIfObjectRefused(e.ObjectRef, err)
	}
	if live == nil || access.StepKeyOf(live) != c.StepKey() && live.GetUID() != uid {
		return nil
	}
	if live.GetDeletionTimestamp() == nil {
		if err := cluster.CheckUnused(ctx, live); err != nil {
			return access.FinalIfObjectRefused(e.ObjectRef, err)
		}
	}
	return cluster.Remove(ctx, c, e.ObjectRef, live.GetUID(), metav1.DeletePropagationBackground, true)
}

func (a *Kind) undoChange(ctx context.Context, cluster *access.Cluster, e *recordEntry) error {
	for {
		live, err := cluster.Find(ctx, e.ObjectRef)
		if err != nil {
			return access.FinalIfObjectRefused(e.ObjectRef, err)
		}
		if live == nil || live.GetUID() != e.UID {
			return nil // the object that the step changed no longer exists
		}
		if e.Withheld != "" {
			return task.Final(fmt.Errorf("%s was changed and cannot be restored: %s: restore it by hand, then mark the task undone", e.ObjectRef, e.Withheld))
		}
		patch, left, err := e.restorePatch(live)
		if err != nil {
			return err
		}
		if patch != nil {
			err = cluster.Merge(ctx, e.ObjectRef, patch)
		}
		if err == nil && len(left) > 0 && e.Planned {
			return task.Final(fmt.Errorf("%s cannot be restored in %s: the task was interrupted before it recorded the changed object, or another client has changed it since: restore it by hand, then mark the task undone",
				e.ObjectRef, view.First(left)))
		}
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) { // after a conflict, read the object again: another client wrote to it
			return access.FinalIfObjectRefused(e.ObjectRef, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// restorePatch returns the patch that restores the fields that still have this step's values, or
// nil. left contains the paths of all other changed fields. If scute owned no field before, the
// patch also releases scute's ownership.
func (e *recordEntry) restorePatch(live *unstructured.Unstructured) (patch map[string]any, left []string, err error) {
	var before, after map[string]any
	if err := json.Unmarshal(e.Before, &before); err != nil {
		return nil, nil, task.Final(fmt.Errorf("reading the recorded state of %s before its change: %w", e.ObjectRef, err))
	}
	if err := json.Unmarshal(e.After, &after); err != nil {
		return nil, nil, task.Final(fmt.Errorf("reading the recorded change of %s: %w", e.ObjectRef, err))
	}
	raw, err := json.Marshal(access.ContentOf(live))
	if err != nil {
		return nil, nil, err
	}
	var now map[string]any
	if err := json.Unmarshal(raw, &now); err != nil {
		return nil, nil, err
	}
	patch = revertPatch(before, after, now, "", &left)
	release := !e.Managed && isManaged(live)
	if len(patch) == 0 && !release {
		return nil, left, nil
	}
	meta, _ := patch["metadata"].(map[string]any)
	if meta == nil {
		meta = make(map[string]any)
	}
	meta["uid"], meta["resourceVersion"] = live.GetUID(), live.GetResourceVersion()
	if release {
		meta["managedFields"] = slices.DeleteFunc(live.GetManagedFields(), isOwnEntry)
	}
	patch["metadata"] = meta
	return patch, left, nil
}

// revertPatch returns the part of before whose fields in now still match the fingerprints in after.
// It adds to left the fields that have neither this step's value nor the earlier one.
func revertPatch(before, after, now map[string]any, path string, left *[]string) map[string]any {
	patch := make(map[string]any)
	for _, field := range slices.Sorted(maps.Keys(before)) {
		was, then, is := before[field], after[field], now[field]
		wasMap, a := was.(map[string]any)
		thenMap, b := then.(map[string]any)
		isMap, c := is.(map[string]any)
		switch {
		case reflect.DeepEqual(then, fingerprint(is)): // a missing field is nil in both
			patch[field] = was
		case was == nil && b && c: // this step added a map, and other clients added to it
			wasMap = make(map[string]any)
			for name := range thenMap {
				wasMap[name] = nil
			}
			fallthrough
		case a && b && c:
			if part := revertPatch(wasMap, thenMap, isMap, path+field+".", left); len(part) > 0 {
				patch[field] = part
			}
		case !reflect.DeepEqual(was, is):
			*left = append(*left, path+field)
		}
	}
	return patch
}

// Verify returns a reason to run the task again: an object is gone, is being deleted, or was
// recreated. It returns "" if another task, such as a Delete or a Move, has removed an object,
// because the run wants it to be gone.
func (a *Kind) Verify(ctx context.Context, c *task.Call) (reason string, err error) {
	record, err := task.Recorded[record](c)
	if err != nil {
		return "", err
	}
	cluster, err := a.Clusters.Open(ctx, c, record.Cluster.ClusterRef)
	if err != nil {
		return "", err
	}
	objects := outputObjects(c.Output)
	for _, e := range record.Objects {
		if c.Removed != nil && c.Removed(task.Object{Namespace: e.Namespace, UID: string(cmp.Or(objects[e.ObjectRef].UID, e.UID))}) {
			return "", nil
		}
	}
	for _, e := range record.Objects {
		live, err := cluster.Find(ctx, e.ObjectRef)
		if err != nil {
			return "", access.FinalIfObjectRefused(e.ObjectRef, err)
		}
		o, known := objects[e.ObjectRef]
		switch {
		case live == nil && o.Complete:
		case live == nil:
			return e.String() + " no longer exists", nil
		case live.GetDeletionTimestamp() != nil:
			return e.String() + " is being deleted", nil
		case known && live.GetUID() != o.UID:
			return e.String() + " was deleted and created again", nil
		}
	}
	return "", nil
}

// outputObjects returns the objects in a recorded output. It returns none if the output cannot be
// decoded, because an operator may have set any output.
func outputObjects(recorded json.RawMessage) map[access.ObjectRef]outputObject {
	objects := make(map[access.ObjectRef]outputObject)
	var out output
	if len(recorded) > 0 && json.Unmarshal(recorded, &out) == nil {
		for _, o := range out.Objects {
			objects[o.ObjectRef] = o
		}
	}
	return objects
}
