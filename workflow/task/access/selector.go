package access

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/internal/fair"
	"scute.dev/kube"
	"scute.dev/workflow/task"
)

// ObjectSelector selects objects of one kind in one namespace by their labels.
type ObjectSelector struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace defaults to the run's.
	Namespace string `json:"namespace,omitempty"`
	// LabelSelector is a selector in the syntax of kubectl, for example "app=web,tier!=cache".
	LabelSelector string `json:"labelSelector"`
}

func (s *ObjectSelector) ref() ObjectRef {
	return ObjectRef{APIVersion: s.APIVersion, Kind: s.Kind, Namespace: s.Namespace}
}

// String returns the selector for messages.
func (s *ObjectSelector) String() string {
	return fmt.Sprintf("%s with %s", s.Kind, s.LabelSelector)
}

// Check returns the problems of a selector.
func (s *ObjectSelector) Check(field string) (problems task.Problems) {
	if s.APIVersion == "" || s.Kind == "" {
		problems.Add(field, "apiVersion or kind is empty", "set both")
	}
	if s.LabelSelector == "" {
		problems.Add(field+".labelSelector", "it is empty and would select everything", "set labels, for example app=web")
	} else if _, err := labels.Parse(s.LabelSelector); err != nil && !task.HasReferences(s.LabelSelector) {
		problems.Add(field+".labelSelector", err.Error(), "use the syntax of kubectl, for example app=web")
	}
	return problems
}

// EachOf calls fn for each object in named or, if selector is set, for each object that Each finds.
// For a named object that does not exist, the object passed to fn is nil.
func (cl *Cluster) EachOf(ctx context.Context, named []ObjectRef, selector *ObjectSelector, namespace string, fn func(context.Context, ObjectRef, *unstructured.Unstructured) error) error {
	if selector != nil {
		return cl.Each(ctx, selector, namespace, func(ctx context.Context, u *unstructured.Unstructured) error { return fn(ctx, RefOf(u), u) })
	}
	for _, ref := range named {
		ref, known, err := cl.Qualify(ctx, ref, namespace)
		if err != nil {
			return FinalIfRefused(err)
		}
		var u *unstructured.Unstructured
		if known { // an unknown kind has no objects
			if u, err = cl.Find(ctx, ref); err != nil {
				return FinalIfObjectRefused(ref, err)
			}
		}
		if err := fn(ctx, ref, u); err != nil {
			return err
		}
	}
	return nil
}

// pageTimeout is how long a page may stay in memory while other callers wait.
const pageTimeout = 10 * time.Second

// Each calls fn for each selected object, page by page, because all objects together may not fit
// into memory. It does nothing if the kind does not exist.
//
// The context of fn ends when the page has been in memory for pageTimeout. If fn then fails, its
// object and the rest of the page are read again one by one, and fn is called with ctx for each of
// them.
func (cl *Cluster) Each(ctx context.Context, s *ObjectSelector, namespace string, fn func(context.Context, *unstructured.Unstructured) error) error {
	ref, known, err := cl.Qualify(ctx, s.ref(), namespace)
	if err != nil || !known {
		return err
	}
	selector, err := labels.Parse(s.LabelSelector)
	if err != nil {
		return task.Final(fmt.Errorf("with.selector.labelSelector: %w", err))
	}
	found, page := 0, cl.pages.Slot(cl.namespace)
	defer page.Release()
	return kube.EachPage("list "+s.String(), func(o metav1.ListOptions) (next string, err error) {
		if err := page.Acquire(ctx); err != nil { // the timeout of the request must not include this wait
			return "", fmt.Errorf("waiting to list %s: %w", s, err)
		}
		list, err := cl.readPage(ctx, s, ref, page, client.MatchingLabelsSelector{Selector: selector}, client.Limit(o.Limit), client.Continue(o.Continue))
		if err != nil {
			page.Release()
			return "", err
		}
		found, next = found+len(list.Items), list.GetContinue()
		left, err := processInTime(ctx, list.Items, fn)
		page.Release()
		for _, name := range left {
			alone, err := cl.readPage(ctx, s, ref, new(fair.Slot), client.MatchingLabelsSelector{Selector: selector}, client.MatchingFields{metav1.ObjectNameField: name}, client.Limit(1))
			if err != nil {
				return "", err
			}
			for i := range alone.Items { // empty if the object is gone or no longer selected
				if err := fn(ctx, &alone.Items[i]); err != nil {
					return "", err
				}
			}
		}
		if err == nil && next != "" && found > MaxObjects {
			err = task.Final(fmt.Errorf("with.selector: it selects more than %d objects: select fewer", MaxObjects))
		}
		return next, err
	})
}

// readPage acquires the slot and reads a page. It keeps the slot, unless the request fails.
func (cl *Cluster) readPage(ctx context.Context, s *ObjectSelector, ref ObjectRef, place *fair.Slot, o ...client.ListOption) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(ref.GVK())
	err := cl.Kube.Do(ctx, "list "+s.String(), func(ctx context.Context) error {
		if err := place.Acquire(ctx); err != nil {
			return err
		}
		err := cl.Client.List(ctx, list, append(o, client.InNamespace(ref.Namespace))...)
		if err != nil {
			place.Release() // the next try may be much later
		}
		return err
	})
	return list, FinalIfRefused(err)
}

// processInTime calls fn for the objects of a page until pageTimeout has passed. It returns the
// names of the objects that were not processed.
func processInTime(ctx context.Context, page []unstructured.Unstructured, fn func(context.Context, *unstructured.Unstructured) error) (left []string, err error) {
	inTime, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	for i := range page {
		if err = inTime.Err(); err == nil {
			err = fn(inTime, &page[i])
		}
		switch {
		case err == nil:
		case inTime.Err() == nil || ctx.Err() != nil:
			return nil, err
		default:
			left = append(left, page[i].GetName())
		}
	}
	return left, nil
}

// List returns all selected objects at once. They must fit into memory.
func (cl *Cluster) List(ctx context.Context, s *ObjectSelector, namespace string) (found []unstructured.Unstructured, err error) {
	err = cl.Each(ctx, s, namespace, func(_ context.Context, u *unstructured.Unstructured) error {
		found = append(found, *u)
		return nil
	})
	return found, err
}
