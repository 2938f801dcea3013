package access

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/inputs"
)

// ObjectSelector selects objects of one kind in one namespace by their labels.
type ObjectSelector struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace defaults to the run's.
	Namespace string `json:"namespace,omitempty"`
	// LabelSelector as kubectl takes it, for example "app=web,tier!=cache".
	LabelSelector string `json:"labelSelector"`
}

func (s *ObjectSelector) ref() ObjectRef {
	return ObjectRef{APIVersion: s.APIVersion, Kind: s.Kind, Namespace: s.Namespace}
}

// String is for people.
func (s *ObjectSelector) String() string {
	return fmt.Sprintf("%s with %s", s.Kind, s.LabelSelector)
}

// Check finds what a selector of the inputs lacks.
func (s *ObjectSelector) Check(field string) (problems []workflow.Problem) {
	if s.APIVersion == "" || s.Kind == "" {
		problems = append(problems, workflow.Problem{Field: field, Message: "apiVersion or kind is empty", Remedy: "give both"})
	}
	if s.LabelSelector == "" {
		problems = append(problems, workflow.Problem{Field: field + ".labelSelector", Message: "it is empty and would select everything", Remedy: "give labels, for example app=web"})
	} else if _, err := labels.Parse(s.LabelSelector); err != nil && !inputs.Templated(s.LabelSelector) {
		problems = append(problems, workflow.Problem{Field: field + ".labelSelector", Message: err.Error(), Remedy: "write it as kubectl takes it, for example app=web"})
	}
	return problems
}

// Each calls fn for each of the selected objects, page by page: there may be no room in memory for all of them. It calls it for none if
// the kind is not there.
func (cl *Cluster) Each(ctx context.Context, s *ObjectSelector, namespace string, fn func(*unstructured.Unstructured) error) error {
	ref, known, err := cl.Qualify(ctx, s.ref(), namespace)
	if err != nil || !known {
		return err
	}
	selector, err := labels.Parse(s.LabelSelector)
	if err != nil {
		return task.Final(fmt.Errorf("with.selector.labelSelector: %w", err))
	}
	found, page := 0, cl.pages.Place(cl.namespace)
	return kube.Pages("list "+s.String(), func(o metav1.ListOptions) (next string, err error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(ref.GVK())
		if err := page.Take(ctx); err != nil { // before a try, which has time for a request alone
			return "", fmt.Errorf("waiting to list %s: %w", s, err)
		}
		defer page.Give()
		err = cl.Kube.Do(ctx, "list "+s.String(), func(ctx context.Context) error {
			if err := page.Take(ctx); err != nil {
				return err
			}
			err := cl.Client.List(ctx, list, client.InNamespace(ref.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(o.Limit), client.Continue(o.Continue))
			if err != nil {
				page.Give() // it may be long until the next try
			}
			return err
		})
		if err != nil {
			return "", Refusal(err)
		}
		for i := range list.Items {
			if err := fn(&list.Items[i]); err != nil {
				return "", err
			}
		}
		found += len(list.Items)
		if next = list.GetContinue(); next != "" && found > ObjectsLimit {
			return "", task.Final(fmt.Errorf("with.selector: it selects more than %d objects: select fewer", ObjectsLimit))
		}
		return next, nil
	})
}

// List reads the selected objects, which must have room in memory.
func (cl *Cluster) List(ctx context.Context, s *ObjectSelector, namespace string) (found []unstructured.Unstructured, err error) {
	err = cl.Each(ctx, s, namespace, func(u *unstructured.Unstructured) error {
		found = append(found, *u)
		return nil
	})
	return found, err
}
