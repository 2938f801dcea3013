package access

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// listPage is how many objects one answer holds.
const listPage = 500

// List reads the selected objects; none if the kind is not there.
func (cl *Cluster) List(ctx context.Context, s *ObjectSelector, namespace string) ([]unstructured.Unstructured, error) {
	ref, known, err := cl.Qualify(ctx, s.ref(), namespace)
	if err != nil || !known {
		return nil, err
	}
	selector, err := labels.Parse(s.LabelSelector)
	if err != nil {
		return nil, task.Final(fmt.Errorf("with.selector.labelSelector: %w", err))
	}
	var found []unstructured.Unstructured
	next := ""
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(ref.GVK())
		err = cl.Kube.Do(ctx, "list "+s.String(), func(ctx context.Context) error {
			return cl.Client.List(ctx, list, client.InNamespace(ref.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(listPage), client.Continue(next))
		})
		if err != nil {
			return nil, Refusal(err)
		}
		found = append(found, list.Items...)
		if next = list.GetContinue(); next == "" {
			return found, nil
		}
		if len(found) > ObjectsLimit {
			return nil, task.Final(fmt.Errorf("with.selector: it selects more than %d objects: select fewer", ObjectsLimit))
		}
	}
}
