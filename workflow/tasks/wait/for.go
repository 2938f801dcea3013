package wait

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/internal/fair"
	"scute.dev/internal/redact"
	"scute.dev/kube/object"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// WaitFor is "settled", "ready", "gone", {condition: {type, status}} or {cel: EXPRESSION}.
//
// +kubebuilder:validation:Schemaless
// +kubebuilder:pruning:PreserveUnknownFields
type WaitFor struct {
	// State is "settled" (see package kube/settled; the same as ready for kinds that it does not
	// cover), "ready" (as kstatus defines it) or "gone".
	State string `json:"-"`
	// Condition is a condition in status.conditions.
	Condition *WaitCondition `json:"condition,omitempty"`
	// CEL is an expression over object that must be true. It counts as false while a field that it reads is missing.
	CEL string `json:"cel,omitempty"`
}

// WaitCondition is a condition of an object.
type WaitCondition struct {
	Type string `json:"type"`
	// Status defaults to "True".
	Status string `json:"status,omitempty"`
}

const (
	waitSettled = "settled"
	waitReady   = "ready"
	waitGone    = "gone"
)

// allowedStates is the remedy for an invalid "for".
const allowedStates = "use settled, ready, gone, {condition: {type, status}} or {cel: EXPRESSION}"

// UnmarshalJSON decodes a word or an object.
func (f *WaitFor) UnmarshalJSON(data []byte) error {
	*f = WaitFor{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &f.State)
	}
	type plain WaitFor
	if problems := task.DecodeStrict(data, (*plain)(f)); len(problems) > 0 {
		return fmt.Errorf("for: %s", problems[0])
	}
	return nil
}

// MarshalJSON encodes a WaitFor for UnmarshalJSON.
func (f WaitFor) MarshalJSON() ([]byte, error) {
	if f.State != "" {
		return json.Marshal(f.State)
	}
	type plain WaitFor
	return json.Marshal(plain(f))
}

func (f *WaitFor) check() (problems task.Problems) {
	switch {
	case task.CountSet(f.State != "", f.Condition != nil, f.CEL != "") != 1:
		problems.Add("for", "it must have exactly one condition", allowedStates)
	case f.State != "" && !slices.Contains([]string{waitSettled, waitReady, waitGone}, f.State) && !task.HasReferences(f.State):
		problems.Add("for", fmt.Sprintf("%q is unknown", f.State), allowedStates)
	case f.Condition != nil && f.Condition.Type == "":
		problems.Add("for.condition.type", "it is empty", "name the condition, for example Available")
	case f.CEL != "" && !task.HasReferences(f.CEL):
		if _, err := compileCEL(f.CEL); err != nil {
			problems.Add("for.cel", err.Error(), "correct the expression; the object is in the variable object")
		}
	}
	return problems
}

// objectTest tests an object. It returns what the object lacks, or "" if the object passes.
type objectTest func(context.Context, access.ObjectRef, *unstructured.Unstructured) (string, error)

func (w *With) newTest(cluster *access.Cluster, evaluation *fair.Slot) (objectTest, error) {
	switch {
	case w.For.State == waitGone:
		return func(_ context.Context, ref access.ObjectRef, u *unstructured.Unstructured) (string, error) {
			if u == nil {
				return "", nil
			}
			return ref.String() + " still exists", nil
		}, nil
	case w.For.State == waitSettled:
		return cluster.UnsettledReason, nil
	case w.For.State == waitReady:
		return func(_ context.Context, ref access.ObjectRef, u *unstructured.Unstructured) (string, error) {
			return access.UnreadyReason(ref, u)
		}, nil
	case w.For.Condition != nil:
		lag := func(u *unstructured.Unstructured) string { return object.ConditionLag(u, w.For.Condition.Type) }
		test := w.requireFresh(w.For.Condition.test, lag)
		if w.Object != nil { // a selector may also select objects that have ended
			test = failIfEnded(test)
		}
		return test, nil
	case w.For.CEL != "":
		program, err := compileCEL(w.For.CEL)
		if err != nil {
			return nil, task.Final(fmt.Errorf("with.for.cel: %w", err))
		}
		return w.requireFresh(withSlot(evaluation, program.test), object.StatusLag), nil
	default:
		return nil, task.Final(errors.New("with.for: it is empty"))
	}
}

// failIfEnded returns a test that fails if the object does not pass the given test and can no
// longer change.
func failIfEnded(test objectTest) objectTest {
	return func(ctx context.Context, ref access.ObjectRef, u *unstructured.Unstructured) (string, error) {
		missing, err := test(ctx, ref, u)
		if err != nil || missing == "" || u == nil {
			return missing, err
		}
		if ended := access.FinalState(ref, u); ended != "" {
			return "", access.FailedObject(fmt.Errorf("%s: it has ended (%s)", missing, ended))
		}
		return missing, nil
	}
}

// withSlot returns a test that acquires the slot before it runs the given test.
func withSlot(place *fair.Slot, test objectTest) objectTest {
	return func(ctx context.Context, ref access.ObjectRef, u *unstructured.Unstructured) (string, error) {
		if err := place.Acquire(ctx); err != nil {
			return "", err
		}
		defer place.Release()
		return test(ctx, ref, u)
	}
}

// requireFresh returns a test that an object passes only if its status is not from an earlier
// generation. lag returns why the status is from an earlier one, or "".
func (w *With) requireFresh(test objectTest, lag func(*unstructured.Unstructured) string) objectTest {
	if w.AllowStale {
		return test
	}
	return func(ctx context.Context, ref access.ObjectRef, u *unstructured.Unstructured) (string, error) {
		missing, err := test(ctx, ref, u)
		if err != nil || missing != "" || u == nil {
			return missing, err
		}
		if stale := lag(u); stale != "" {
			return ref.String() + ": " + stale, nil
		}
		return "", nil
	}
}

func (w *WaitCondition) test(_ context.Context, ref access.ObjectRef, u *unstructured.Unstructured) (string, error) {
	if u == nil {
		return ref.String() + " does not exist", nil
	}
	want := cmp.Or(w.Status, string(object.True))
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
