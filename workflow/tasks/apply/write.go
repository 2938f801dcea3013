package apply

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/workflow/task/access"
)

// errRaced: it is not ours to delete.
var errRaced = errors.New("was created by another while this task was about to")

// errMoved: what is recorded of it is no longer so.
var errMoved = errors.New("was changed by another while this task was about to")

// racedLimit is how often an attempt looks again when others have created what it was about to.
const racedLimit = 3

// servedWithin is how long an API server may take to serve a kind whose definition it has established.
const servedWithin = 30 * time.Second

// write applies what must be written: namespaces, then definitions until they are served, then the rest in its order.
func (w *applying) write(ctx context.Context) error {
	var definitions []*workItem
	established := false
	for _, item := range w.items {
		if item.ref.IsDefinition() {
			definitions = append(definitions, item)
		} else if len(definitions) > 0 && order(item.ref) == 2 && !established {
			if err := w.ready(ctx, definitions); err != nil {
				return err
			}
			if err := w.call.WorksAgain(ctx); err != nil {
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
		if item.later {
			if err := w.compareLater(ctx, item); err != nil {
				return err
			}
			if !item.todo {
				continue
			}
		}
		if err := w.writeOne(ctx, item); err != nil {
			return err
		}
	}
	return nil
}

func (w *applying) writeOne(ctx context.Context, item *workItem) error {
	if item.live != nil {
		if err := w.unmoved(ctx, item); err != nil {
			return err
		}
	}
	u, err := w.apply(ctx, item)
	if item.live == nil && apierrors.IsConflict(err) {
		return fmt.Errorf("%s %w: %w", item.ref, errRaced, err)
	}
	if err != nil {
		return err
	}
	if item.live == nil && strangers(u) {
		// Between the look and the write somebody else has created it: it is not ours to delete.
		if err := w.unmark(ctx, item.ref, u.GetUID()); err != nil {
			return err
		}
		return fmt.Errorf("%s %w: the next attempt takes it as it is", item.ref, errRaced)
	}
	item.uid = u.GetUID()
	if item.live != nil {
		changed, err := w.record.wrote(item, u)
		w.wrote = w.wrote || changed
		return err
	}
	return nil
}

// unmoved returns errRaced if an object is no longer what was looked at: what others have changed since would be taken for the task's own change.
func (w *applying) unmoved(ctx context.Context, item *workItem) error {
	live, err := w.cluster.Find(ctx, item.ref)
	if err != nil {
		return access.RefusalOf(item.ref, err)
	}
	if live == nil || live.GetUID() != item.live.GetUID() || !reflect.DeepEqual(access.ContentOf(live), access.ContentOf(item.live)) {
		return fmt.Errorf("%s %w", item.ref, errMoved)
	}
	item.live = live
	return nil
}

// served waits for the kind of an object, if its definition has just been made.
func (w *applying) served(ctx context.Context, ref access.ObjectRef, established bool) error {
	missing := fmt.Sprintf("the API server has no kind %s in %s", ref.Kind, ref.APIVersion)
	_, known, err := w.cluster.Mapping(ctx, ref.GVK())
	switch {
	case err != nil || known:
		return err
	case !established:
		return errors.New(missing + ": install its definition first")
	}
	soon, cancel := context.WithTimeout(ctx, servedWithin)
	defer cancel()
	if err := access.Poll(soon, w.call, func(ctx context.Context) (string, error) {
		_, known, err := w.cluster.Mapping(ctx, ref.GVK())
		if err != nil || known {
			return "", err
		}
		return missing + " yet", nil
	}); err != nil {
		return err
	}
	return w.call.WorksAgain(ctx)
}

// ready waits until the objects are settled. An object that says that it has failed ends the wait.
func (w *applying) ready(ctx context.Context, items []*workItem) error {
	left := items
	err := access.Poll(ctx, w.call, func(ctx context.Context) (string, error) {
		var still []*workItem
		var says []string
		for _, item := range left {
			u, err := w.cluster.Find(ctx, item.ref)
			if err != nil {
				return "", access.RefusalOf(item.ref, err)
			}
			missing, err := w.cluster.Settled(ctx, item.ref, u)
			if err != nil {
				return "", err
			}
			if missing != "" {
				still = append(still, item)
				says = append(says, missing)
			} else {
				item.uid = u.GetUID()
				item.complete = access.Ended(item.ref, u) == string(batchv1.JobComplete)
			}
		}
		left = still
		return access.Few(says), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for readiness: %w", err)
	}
	return nil
}

// unmark takes this step's mark off an object.
func (w *applying) unmark(ctx context.Context, ref access.ObjectRef, uid types.UID) error {
	return w.cluster.Merge(ctx, ref, map[string]any{"metadata": map[string]any{
		"uid": uid, "annotations": map[string]any{access.MarkAnnotation: nil},
	}})
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
