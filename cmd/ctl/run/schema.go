package run

import (
	"context"
	stdjson "encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"scute.dev/internal/crd"
	"scute.dev/kube/document"
	"scute.dev/workflow"
)

// againstSchema returns the problems for which an API server would refuse a manifest by the schema of the resource. It ignores
// the limits of tasks and needs, which only apply in a cluster, where the resource must fit into etcd.
func againstSchema(object map[string]any) ([]workflow.Problem, error) {
	if object["spec"] == nil {
		return nil, nil // decode returns a problem
	}
	v, err := crd.New("WorkflowRun")
	if err != nil {
		return nil, err
	}
	errs := slices.DeleteFunc(v.Validate(context.Background(), object), func(err *field.Error) bool {
		return err.Type == field.ErrorTypeTooMany && (err.Field == "spec.tasks" || strings.HasSuffix(err.Field, ".needs"))
	})
	var problems []workflow.Problem
	for _, err := range errs {
		problems = append(problems, workflow.Problem{Field: strings.Replace(err.Field, "<nil>", "spec", 1), Message: err.ErrorBody(), Remedy: "correct it"})
	}
	slices.SortStableFunc(problems, func(a, b workflow.Problem) int { return strings.Compare(a.Field, b.Field) })
	return problems, nil
}

// decodeObject returns a document as decoded from JSON, or nil if it is not an object.
func decodeObject(text []byte) (object map[string]any) {
	var data stdjson.RawMessage
	if document.Unmarshal(text, &data) != nil || json.Unmarshal(data, &object) != nil {
		return nil
	}
	return object
}

// mergeProblems returns the problems that the reader of a manifest has found, and those of a later check. If both have a problem of a
// field, only the later problem is returned, because its remedy is better.
func mergeProblems(read, known []workflow.Problem) []workflow.Problem {
	named := make(map[string]bool, len(known))
	for i := range known {
		named[known[i].Field] = true
	}
	read = slices.DeleteFunc(slices.Clone(read), func(p workflow.Problem) bool { return named[p.Field] })
	return append(read, known...)
}
