package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
)

// servedWithin is how long an API server may take to serve a kind whose definition it has established.
const servedWithin = 30 * time.Second

// write applies what must be written: namespaces, then definitions until they are served, then the rest in its order.
func (w *applying) write(ctx context.Context) error {
	var definitions []*applyItem
	established := false
	for _, item := range w.items {
		if definition(item.ref) {
			definitions = append(definitions, item)
		} else if len(definitions) > 0 && applyOrder(item.ref) == 2 && !established {
			if err := w.ready(ctx, definitions); err != nil {
				return err
			}
			established = true
		}
		if !item.todo {
			continue
		}
		if err := w.served(ctx, item.ref, established); err != nil {
			return err
		}
		if err := w.writeOne(ctx, item); err != nil {
			return err
		}
	}
	return nil
}

func (w *applying) writeOne(ctx context.Context, item *applyItem) error {
	u, err := w.apply(ctx, item)
	if err != nil {
		return err
	}
	if item.live == nil && strangers(u) {
		// Between the look and the write somebody else has created it: it is not ours to delete.
		if err := w.unmark(ctx, item.ref, u.GetUID()); err != nil {
			return err
		}
		return fmt.Errorf("%s was created by another while this task was about to: the next attempt takes it as it is", item.ref)
	}
	item.uid = u.GetUID()
	return nil
}

// served waits for the kind of an object, if its definition has just been made.
func (w *applying) served(ctx context.Context, ref ObjectRef, established bool) error {
	missing := fmt.Sprintf("the API server has no kind %s in %s", ref.Kind, ref.APIVersion)
	_, known, err := w.cluster.mapping(ctx, ref.gvk())
	switch {
	case err != nil || known:
		return err
	case !established:
		return errors.New(missing + ": install its definition first")
	}
	ctx, cancel := context.WithTimeout(ctx, servedWithin)
	defer cancel()
	return poll(ctx, w.call, func(ctx context.Context) (string, error) {
		_, known, err := w.cluster.mapping(ctx, ref.gvk())
		if err != nil || known {
			return "", err
		}
		return missing + " yet", nil
	})
}

// ready waits until the objects are settled. An object that says that it has failed ends the wait.
func (w *applying) ready(ctx context.Context, items []*applyItem) error {
	left := items
	err := poll(ctx, w.call, func(ctx context.Context) (string, error) {
		var still []*applyItem
		var says []string
		for _, item := range left {
			u, err := w.cluster.find(ctx, item.ref)
			if err != nil {
				return "", refusalOf(item.ref, err)
			}
			missing, err := w.cluster.settled(ctx, item.ref, u)
			if err != nil {
				return "", err
			}
			if missing != "" {
				still = append(still, item)
				says = append(says, missing)
			} else {
				item.uid = u.GetUID()
			}
		}
		left = still
		return bounded(says), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for readiness: %w", err)
	}
	return nil
}

// failedObjectError is an object that says that it has failed. Waiting on does not help; another attempt may.
type failedObjectError struct{ err error }

func (f *failedObjectError) Error() string { return f.err.Error() }

func (f *failedObjectError) Unwrap() error { return f.err }

// unmark takes this step's mark off an object.
func (w *applying) unmark(ctx context.Context, ref ObjectRef, uid types.UID) error {
	return w.cluster.merge(ctx, ref, map[string]any{"metadata": map[string]any{
		"uid": uid, "annotations": map[string]any{MarkAnnotation: nil},
	}})
}

// merge sends a merge patch in scute's name. That the object is gone is no error.
func (cl *Cluster) merge(ctx context.Context, ref ObjectRef, patch map[string]any) error {
	raw, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding a patch of %s: %w", ref, err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(ref.gvk())
	u.SetNamespace(ref.Namespace)
	u.SetName(ref.Name)
	err = cl.Kube.Do(ctx, "patch "+ref.String(), func(ctx context.Context) error {
		return cl.Client.Patch(ctx, u, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(kube.FieldManager))
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// dropOwnEntry is the list of managed fields without scute's own entry.
func dropOwnEntry(fields []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	kept := make([]metav1.ManagedFieldsEntry, 0, len(fields))
	for _, e := range fields {
		if !ownEntry(e) {
			kept = append(kept, e)
		}
	}
	return kept
}
