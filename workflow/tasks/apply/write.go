package apply

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scute.dev/view"
	"scute.dev/workflow/task/access"
)

// errCreatedByOther means that another client created an object after observe. The undo must keep
// it.
var errCreatedByOther = errors.New("was created by another client just before this task created it")

// errChangedByOther means that another client changed an object after observe recorded it.
var errChangedByOther = errors.New("was changed by another client just before this task changed it")

// maxRaces is how often an attempt observes the objects again because other clients changed them.
const maxRaces = 3

// serveTimeout limits the wait until the API server serves a kind whose definition is established.
const serveTimeout = 30 * time.Second

// write writes the objects: first namespaces, then CustomResourceDefinitions, and when these are
// served, all other objects in order.
func (w *applying) write(ctx context.Context) error {
	var definitions []*workItem
	established := false
	for _, item := range w.items {
		if item.ref.IsDefinition() {
			definitions = append(definitions, item)
		} else if len(definitions) > 0 && applyOrder(item.ref) == 2 && !established {
			if err := w.waitReady(ctx, definitions); err != nil {
				return err
			}
			if err := w.call.ReacquireSlot(ctx); err != nil {
				return err
			}
			established = true
		}
		if !item.needsWrite {
			continue
		}
		if err := w.waitServed(ctx, item.ref, established); err != nil {
			return err
		}
		if item.deferred {
			if err := w.compareDeferred(ctx, item); err != nil {
				return err
			}
			if !item.needsWrite {
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
		if err := w.checkUnchanged(ctx, item); err != nil {
			return err
		}
	}
	u, err := w.apply(ctx, item)
	if item.live == nil && apierrors.IsConflict(err) {
		return fmt.Errorf("%s %w: %w", item.ref, errCreatedByOther, err)
	}
	if err != nil {
		return err
	}
	if item.live == nil && hasOtherManagers(u) {
		// Another client created the object after observe read it.
		if err := w.cluster.Merge(ctx, item.ref, map[string]any{"metadata": map[string]any{
			"uid": u.GetUID(), "annotations": map[string]any{access.StepKeyAnnotation: nil},
		}}); err != nil {
			return err
		}
		return fmt.Errorf("%s %w: the next attempt adopts it", item.ref, errCreatedByOther)
	}
	item.uid = u.GetUID()
	if item.live != nil {
		changed, err := w.record.recordWrite(item, u)
		w.recordChanged = w.recordChanged || changed
		return err
	}
	return nil
}

// checkUnchanged fails if an object has changed since observe read it. The record would attribute
// that change to this task.
func (w *applying) checkUnchanged(ctx context.Context, item *workItem) error {
	live, err := w.cluster.Find(ctx, item.ref)
	if err != nil {
		return access.FinalIfObjectRefused(item.ref, err)
	}
	if live == nil || live.GetUID() != item.live.GetUID() || !reflect.DeepEqual(access.ContentOf(live), access.ContentOf(item.live)) {
		return fmt.Errorf("%s %w", item.ref, errChangedByOther)
	}
	item.live = live
	return nil
}

// waitServed waits until the API server serves a kind whose CustomResourceDefinition this task has
// just written.
func (w *applying) waitServed(ctx context.Context, ref access.ObjectRef, established bool) error {
	missing := fmt.Sprintf("the API server has no kind %s in %s", ref.Kind, ref.APIVersion)
	_, known, err := w.cluster.Mapping(ctx, ref.GVK())
	switch {
	case err != nil || known:
		return err
	case !established:
		return errors.New(missing + ": install its definition first")
	}
	soon, cancel := context.WithTimeout(ctx, serveTimeout)
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
	return w.call.ReacquireSlot(ctx)
}

func (w *applying) waitReady(ctx context.Context, items []*workItem) error {
	left := items
	err := access.Poll(ctx, w.call, func(ctx context.Context) (string, error) {
		var still []*workItem
		var reasons []string
		for _, item := range left {
			u, err := w.cluster.Find(ctx, item.ref)
			if err != nil {
				return "", access.FinalIfObjectRefused(item.ref, err)
			}
			missing, err := w.cluster.UnsettledReason(ctx, item.ref, u)
			if err != nil {
				return "", err
			}
			if missing != "" {
				still = append(still, item)
				reasons = append(reasons, missing)
			} else {
				item.uid = u.GetUID()
				item.complete = access.FinalState(item.ref, u) == string(batchv1.JobComplete)
			}
		}
		left = still
		return view.First(reasons), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for readiness: %w", err)
	}
	return nil
}
