package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/internal/redact"
	"scute.dev/kube/object"
	"scute.dev/workflow"
)

// Wait waits until objects are as they should be. That they are not there yet, or the API server is away, is waited for
// too; it ends by the task's timeout, or when an object that shall be ready says that it has failed. It changes nothing,
// and there is nothing to undo.
type Wait struct {
	Clusters *Clusters
}

// WaitWith are the inputs of Wait.
type WaitWith struct {
	// Object to wait for.
	Object *ObjectRef `json:"object,omitempty"`
	// Selector waits for all objects of a kind that bear labels, one at least.
	Selector *ObjectSelector `json:"selector,omitempty"`
	// For what to wait.
	For WaitFor `json:"for"`
	// Count is how many of the selected objects shall be so. Default: all of them.
	Count int `json:"count,omitempty"`
	// Cluster that has the objects; the run's own by default.
	Cluster ClusterRef `json:"cluster,omitzero"`
}

// WaitFor is "ready", "gone", {condition: {type, status}} or {cel: EXPRESSION}.
//
// +kubebuilder:validation:Schemaless
// +kubebuilder:pruning:PreserveUnknownFields
type WaitFor struct {
	// State is "ready" (as kstatus understands it) or "gone".
	State string `json:"-"`
	// Condition in status.conditions.
	Condition *WaitCondition `json:"condition,omitempty"`
	// CEL is an expression over object that shall be true. What it reads and is not there yet counts as false.
	CEL string `json:"cel,omitempty"`
}

// WaitCondition is a condition of an object.
type WaitCondition struct {
	Type string `json:"type"`
	// Status defaults to "True".
	Status string `json:"status,omitempty"`
}

// The states of WaitFor.
const (
	waitReady = "ready"
	waitGone  = "gone"
)

// UnmarshalJSON reads a word or an object.
func (f *WaitFor) UnmarshalJSON(data []byte) error {
	*f = WaitFor{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &f.State)
	}
	type plain WaitFor
	if problems := strict(data, (*plain)(f)); len(problems) > 0 {
		return fmt.Errorf("for: %s", problems[0])
	}
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (f WaitFor) MarshalJSON() ([]byte, error) {
	if f.State != "" {
		return json.Marshal(f.State)
	}
	type plain WaitFor
	return json.Marshal(plain(f))
}

// Validate checks the inputs.
func (*Wait) Validate(with json.RawMessage) []workflow.Problem {
	var w WaitWith
	if problems := strict(with, &w); len(problems) > 0 {
		return problems
	}
	var problems []workflow.Problem
	if (w.Object == nil) == (w.Selector == nil) {
		problems = append(problems, workflow.Problem{Field: "object", Message: "the objects are not given in exactly one way", Remedy: "set either object or selector"})
	}
	if w.Object != nil {
		problems = append(problems, w.Object.check("object")...)
	}
	if w.Selector != nil {
		problems = append(problems, w.Selector.check("selector")...)
	}
	if w.Count < 0 || w.Count > 0 && (w.Selector == nil || w.For.State == waitGone) {
		problems = append(problems, workflow.Problem{Field: "count", Message: "there is nothing to count", Remedy: "use a positive count with a selector, and not with for: gone"})
	}
	return append(problems, w.For.check()...)
}

func (f *WaitFor) check() []workflow.Problem {
	ways := 0
	for _, given := range []bool{f.State != "", f.Condition != nil, f.CEL != ""} {
		if given {
			ways++
		}
	}
	problem := func(field, message, remedy string) []workflow.Problem {
		return []workflow.Problem{{Field: field, Message: message, Remedy: remedy}}
	}
	switch {
	case ways != 1:
		return problem("for", "it does not say exactly one thing", "use ready, gone, {condition: {type, status}} or {cel: EXPRESSION}")
	case f.State != "" && f.State != waitReady && f.State != waitGone && !templated(f.State):
		return problem("for", fmt.Sprintf("%q is unknown", f.State), "use ready, gone, {condition: {type, status}} or {cel: EXPRESSION}")
	case f.Condition != nil && f.Condition.Type == "":
		return problem("for.condition.type", "it is empty", "name the condition, for example Available")
	case f.CEL != "" && !templated(f.CEL):
		if _, err := compileCEL(f.CEL); err != nil {
			return problem("for.cel", err.Error(), "correct the expression; the object is in the variable object")
		}
	}
	return nil
}

// waited is the output of Wait.
type waited struct {
	Objects []ObjectRef `json:"objects,omitempty"`
}

// Run looks until all is as it should be.
func (w *Wait) Run(ctx context.Context, c *Call) (json.RawMessage, error) {
	with, err := inputs[WaitWith](c, w.Validate)
	if err != nil {
		return nil, err
	}
	test, err := with.For.test(ctx)
	if err != nil {
		return nil, err
	}
	cluster, err := w.Clusters.Open(ctx, c, with.Cluster)
	if err != nil {
		return nil, err
	}
	var out waited
	c.onlyWaits()
	err = poll(ctx, c, func(ctx context.Context) (string, error) {
		objects, asked, err := with.look(ctx, c, cluster)
		if err != nil {
			return "", err
		}
		out = waited{}
		var missing []string
		for ref, u := range objects {
			says, err := test(ref, u)
			if err != nil {
				return "", &failedObjectError{err}
			}
			if says == "" {
				out.Objects = append(out.Objects, ref)
			} else {
				missing = append(missing, says)
			}
		}
		return with.verdict(asked, len(out.Objects), missing), nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting: %w", err)
	}
	return json.Marshal(out.sorted())
}

// look reads the objects; an object that is not there is nil. asked is how a message calls them.
func (w *WaitWith) look(ctx context.Context, c *Call, cluster *Cluster) (objects map[ObjectRef]*unstructured.Unstructured, asked string, err error) {
	objects = make(map[ObjectRef]*unstructured.Unstructured)
	if w.Selector != nil {
		items, err := cluster.list(ctx, w.Selector, c.Namespace)
		for i := range items {
			objects[refOf(&items[i])] = &items[i]
		}
		return objects, w.Selector.String(), err
	}
	ref, known, err := cluster.qualify(ctx, *w.Object, c.Namespace)
	if err != nil {
		return nil, "", refusal(err)
	}
	var u *unstructured.Unstructured
	if known {
		u, err = cluster.find(ctx, ref)
	}
	objects[ref] = u
	return objects, ref.String(), refusalOf(ref, err)
}

// verdict says what is missing; "" for nothing.
func (w *WaitWith) verdict(asked string, satisfied int, missing []string) string {
	switch {
	case w.Count > 0 && satisfied >= w.Count:
		return ""
	case w.Count > 0:
		return fmt.Sprintf("%d of %d %s: %s", satisfied, w.Count, asked, bounded(missing))
	case len(missing) > 0:
		return bounded(missing)
	case satisfied == 0 && w.For.State != waitGone:
		return "there is no " + asked
	default:
		return ""
	}
}

// test says what an object lacks, "" for nothing. Its error says that waiting on is in vain.
func (f *WaitFor) test(ctx context.Context) (func(ObjectRef, *unstructured.Unstructured) (string, error), error) {
	switch {
	case f.State == waitGone:
		return func(ref ObjectRef, u *unstructured.Unstructured) (string, error) {
			if u == nil {
				return "", nil
			}
			return ref.String() + " is still there", nil
		}, nil
	case f.State == waitReady:
		return readiness, nil
	case f.Condition != nil:
		return f.Condition.test, nil
	case f.CEL != "":
		program, err := compileCEL(f.CEL)
		if err != nil {
			return nil, Final(fmt.Errorf("with.for.cel: %w", err))
		}
		return func(ref ObjectRef, u *unstructured.Unstructured) (string, error) { return program.test(ctx, ref, u) }, nil
	default:
		return nil, Final(errors.New("with.for: it says nothing"))
	}
}

func (w *WaitCondition) test(ref ObjectRef, u *unstructured.Unstructured) (string, error) {
	if u == nil {
		return ref.String() + " is not there", nil
	}
	want := orElse(w.Status, string(object.True))
	status, reason, message := object.Condition(u, w.Type)
	switch {
	case string(status) == want:
		return "", nil
	case status == object.Absent:
		return fmt.Sprintf("%s has no condition %s", ref, w.Type), nil
	default:
		return fmt.Sprintf("%s: %s is %s (%s): %s", ref, w.Type, status, reason, redact.Message(message)), nil
	}
}

// Undo has nothing to undo.
func (*Wait) Undo(context.Context, *Call) error { return nil }
