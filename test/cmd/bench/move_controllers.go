package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	clusterLabel = "cluster.x-k8s.io/cluster-name"
	byCluster    = "cluster"
	// controllerWorkers is the default concurrency of a Cluster API controller.
	controllerWorkers = 10
)

// controllers replace Cluster API's controllers on one side. They set the condition Paused of every object that has one
// according to the Cluster, and the few status fields that a move needs. So all movers wait for the same controllers at
// the same cost.
type controllers struct {
	client    dynamic.Interface
	namespace string
	informers map[string]cache.SharedIndexInformer // by kind
	queue     workqueue.TypedInterface[object]
	stop      context.CancelFunc
	done      sync.WaitGroup
}

type object struct{ kind, name string }

// startControllers starts the controllers, and returns when their caches are filled.
func startControllers(ctx context.Context, c dynamic.Interface, namespace string) (*controllers, error) {
	ctx, stop := context.WithCancel(ctx)
	s := &controllers{client: c, namespace: namespace, informers: make(map[string]cache.SharedIndexInformer), queue: workqueue.NewTyped[object](), stop: stop}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c, 0, namespace, nil)
	for _, k := range kinds() {
		if !k.acknowledges {
			continue
		}
		informer := factory.ForResource(k.resource()).Informer()
		if err := informer.AddIndexers(cache.Indexers{byCluster: func(o any) ([]string, error) {
			return []string{objectOf(o).GetLabels()[clusterLabel]}, nil
		}}); err != nil {
			stop()
			return nil, err
		}
		changed := func(o any) { s.changed(k.name, objectOf(o)) }
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }}); err != nil {
			stop()
			return nil, err
		}
		s.informers[k.name] = informer
	}
	factory.Start(ctx.Done())
	for resource, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			stop()
			return nil, fmt.Errorf("listing %s: %w", resource.Resource, context.Cause(ctx))
		}
	}
	for range controllerWorkers {
		s.done.Go(func() { s.work(ctx) })
	}
	s.done.Go(func() { <-ctx.Done(); s.queue.ShutDown(); factory.Shutdown() })
	return s, nil
}

func (s *controllers) close() {
	s.stop()
	s.done.Wait()
}

// changed queues an object, and for a Cluster all objects that belong to it.
func (s *controllers) changed(kind string, u *unstructured.Unstructured) {
	s.queue.Add(object{kind, u.GetName()})
	if kind != "Cluster" {
		return
	}
	for kind, informer := range s.informers {
		members, err := informer.GetIndexer().ByIndex(byCluster, u.GetName())
		if err != nil {
			continue // the index exists
		}
		for _, m := range members {
			s.queue.Add(object{kind, objectOf(m).GetName()})
		}
	}
}

func (s *controllers) work(ctx context.Context) {
	for {
		o, over := s.queue.Get()
		if over {
			return
		}
		if err := s.reconcile(ctx, o); err != nil && ctx.Err() == nil {
			time.AfterFunc(100*time.Millisecond, func() { s.queue.Add(o) })
		}
		s.queue.Done(o)
	}
}

// reconcile writes the status if it differs.
func (s *controllers) reconcile(ctx context.Context, o object) error {
	u, paused := s.look(o)
	if u == nil || pausedCondition(u) == paused {
		return nil
	}
	condition := func(typ string, status metav1.ConditionStatus) any {
		return map[string]any{
			"type": typ, "status": string(status), "reason": "Bench", "message": "", "observedGeneration": u.GetGeneration(),
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}
	}
	conditions := []any{condition("Paused", paused)}
	status := map[string]any{}
	switch o.kind {
	case "Cluster":
		conditions = append(conditions, condition("ControlPlaneInitialized", metav1.ConditionTrue))
		status["initialization"] = map[string]any{"infrastructureProvisioned": true, "controlPlaneInitialized": true}
	case "Machine":
		status["nodeRef"] = map[string]any{"name": o.name}
	}
	status["conditions"] = conditions
	raw, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = s.client.Resource(kindNamed(o.kind).resource()).Namespace(s.namespace).Patch(ctx, o.name, types.MergePatchType, raw, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// look returns an object and the desired status of its condition Paused, or nothing if the object or its Cluster does
// not exist.
func (s *controllers) look(o object) (u *unstructured.Unstructured, paused metav1.ConditionStatus) {
	u = s.cached(o)
	if u == nil {
		return nil, ""
	}
	cluster := u
	if o.kind != "Cluster" {
		if cluster = s.cached(object{"Cluster", u.GetLabels()[clusterLabel]}); cluster == nil {
			return nil, ""
		}
	}
	if on, _, _ := unstructured.NestedBool(cluster.Object, "spec", "paused"); on {
		return u, metav1.ConditionTrue
	}
	return u, metav1.ConditionFalse
}

func (s *controllers) cached(o object) *unstructured.Unstructured {
	item, found, err := s.informers[o.kind].GetIndexer().GetByKey(s.namespace + "/" + o.name)
	if err != nil || !found {
		return nil
	}
	return objectOf(item)
}

// objectOf returns an item of a dynamic informer's store, which has only unstructured objects.
func objectOf(item any) *unstructured.Unstructured {
	if u, ok := item.(*unstructured.Unstructured); ok {
		return u
	}
	panic(fmt.Sprintf("a dynamic informer stores %T", item))
}

func pausedCondition(u *unstructured.Unstructured) metav1.ConditionStatus {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range list {
		if c, ok := c.(map[string]any); ok && c["type"] == "Paused" {
			return metav1.ConditionStatus(fmt.Sprint(c["status"]))
		}
	}
	return ""
}

// settled waits until the controllers have seen so many Clusters, and no object is paused.
func (s *controllers) settled(ctx context.Context, clusters int) error {
	return s.acknowledged(ctx, clusters, metav1.ConditionFalse)
}

// acknowledged waits until the controllers have seen so many complete Clusters, and the condition of every object is
// paused. It sends no request.
func (s *controllers) acknowledged(ctx context.Context, clusters int, paused metav1.ConditionStatus) error {
	each := 0
	for _, o := range generate("any") {
		if kindNamed(o.kind).acknowledges {
			each++
		}
	}
	return looking(ctx, 20*time.Millisecond, longestMove, "the stand-ins for controllers have done their work", func(context.Context) (string, error) {
		seen := 0
		for kind, informer := range s.informers {
			for _, item := range informer.GetIndexer().List() {
				if seen++; pausedCondition(objectOf(item)) != paused {
					return kind + " " + objectOf(item).GetName() + " does not have Paused=" + string(paused), nil
				}
			}
		}
		if seen != clusters*each {
			return fmt.Sprintf("%d objects, want %d", seen, clusters*each), nil
		}
		return "", nil
	})
}
