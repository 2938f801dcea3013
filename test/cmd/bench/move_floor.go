package main

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// floorWorkers is the same as for scute (--move-workers).
const floorWorkers = 16

// moveAtFloor does only what is necessary to move objects: it lists all of them, creates each on the other side, owners
// first, with the UIDs of the new owners, and then removes the finalizers and deletes each at the source. It pauses,
// checks and records nothing, and cannot be continued after a crash.
func moveAtFloor(ctx context.Context, from, to dynamic.Interface, namespace string) error {
	levels, err := listLevels(ctx, from, namespace)
	if err != nil {
		return err
	}
	if err := createLevels(ctx, to, levels); err != nil {
		return err
	}
	return deleteLevels(ctx, from, levels)
}

// moveAcknowledged moves like moveAtFloor, with the pauses of a move. It pauses the Clusters, waits until the
// controllers of both sides have set the conditions, which it observes without requests, and resumes the copies at the
// end.
func moveAcknowledged(ctx context.Context, from, to *end, namespace string, clusters int) error {
	if err := pauseAll(ctx, from.far, namespace, true); err != nil {
		return err
	}
	if err := from.controllers.acknowledged(ctx, clusters, metav1.ConditionTrue); err != nil {
		return err
	}
	levels, err := listLevels(ctx, from.far, namespace)
	if err != nil {
		return err
	}
	if err := createLevels(ctx, to.far, levels); err != nil {
		return err
	}
	if err := to.controllers.acknowledged(ctx, clusters, metav1.ConditionTrue); err != nil {
		return err
	}
	if err := deleteLevels(ctx, from.far, levels); err != nil {
		return err
	}
	if err := pauseAll(ctx, to.far, namespace, false); err != nil {
		return err
	}
	return to.controllers.acknowledged(ctx, clusters, metav1.ConditionFalse)
}

// pauseAll pauses or resumes every Cluster.
func pauseAll(ctx context.Context, c dynamic.Interface, namespace string, paused bool) error {
	clusters := c.Resource(kindNamed("Cluster").resource()).Namespace(namespace)
	list, err := clusters.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing Clusters: %w", err)
	}
	patch := fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused)
	return inParallel(ctx, list.Items, func(ctx context.Context, u unstructured.Unstructured) error {
		if _, err := clusters.Patch(ctx, u.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("pausing or resuming Cluster %s: %w", u.GetName(), err)
		}
		return nil
	})
}

func createLevels(ctx context.Context, to dynamic.Interface, levels [][]floorObject) error {
	var mu sync.Mutex
	uids := make(map[types.UID]types.UID)
	for _, level := range levels {
		err := inParallel(ctx, level, func(ctx context.Context, o floorObject) error {
			u := o.DeepCopy()
			for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
				unstructured.RemoveNestedField(u.Object, "metadata", field)
			}
			owners := u.GetOwnerReferences()
			mu.Lock()
			for i := range owners {
				owners[i].UID = uids[owners[i].UID]
			}
			mu.Unlock()
			u.SetOwnerReferences(owners)
			created, err := to.Resource(o.kind.resource()).Namespace(o.GetNamespace()).Create(ctx, u, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("creating %s %s: %w", o.kind.name, o.GetName(), err)
			}
			mu.Lock()
			defer mu.Unlock()
			uids[o.GetUID()] = created.GetUID()
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func deleteLevels(ctx context.Context, from dynamic.Interface, levels [][]floorObject) error {
	for i := range levels {
		if err := inParallel(ctx, levels[len(levels)-1-i], func(ctx context.Context, o floorObject) error { return o.remove(ctx, from) }); err != nil {
			return err
		}
	}
	return nil
}

type floorObject struct {
	*unstructured.Unstructured
	kind kind
}

func (o floorObject) remove(ctx context.Context, from dynamic.Interface) error {
	r := from.Resource(o.kind.resource()).Namespace(o.GetNamespace())
	if len(o.GetFinalizers()) > 0 {
		if _, err := r.Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("taking the finalizers off %s %s: %w", o.kind.name, o.GetName(), err)
		}
	}
	uid := o.GetUID()
	if err := r.Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
		return fmt.Errorf("deleting %s %s: %w", o.kind.name, o.GetName(), err)
	}
	return nil
}

// listLevels lists all objects by level. An object's owners are in the levels before it.
func listLevels(ctx context.Context, c dynamic.Interface, namespace string) ([][]floorObject, error) {
	var all []floorObject
	for _, k := range kinds() {
		options := metav1.ListOptions{Limit: 500, LabelSelector: clusterLabel}
		for {
			page, err := c.Resource(k.resource()).Namespace(namespace).List(ctx, options)
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", k.plural, err)
			}
			for i := range page.Items {
				all = append(all, floorObject{&page.Items[i], k})
			}
			if options.Continue = page.GetContinue(); options.Continue == "" {
				break
			}
		}
	}
	known := make(map[types.UID]floorObject, len(all))
	for _, o := range all {
		known[o.GetUID()] = o
	}
	var depth func(o floorObject) int
	depth = func(o floorObject) int {
		deepest := 0
		for _, owner := range o.GetOwnerReferences() {
			if above, ok := known[owner.UID]; ok {
				deepest = max(deepest, 1+depth(above))
			}
		}
		return deepest
	}
	var levels [][]floorObject
	for _, o := range all {
		at := depth(o)
		for len(levels) <= at {
			levels = append(levels, nil)
		}
		levels[at] = append(levels[at], o)
	}
	return levels, nil
}

func inParallel[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(floorWorkers)
	for _, item := range items {
		group.Go(func() error { return do(ctx, item) })
	}
	return group.Wait()
}
