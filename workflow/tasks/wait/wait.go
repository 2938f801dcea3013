package wait

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/internal/fair"
	"scute.dev/view"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Kind waits until objects reach a state. It keeps waiting while the objects do not exist or the API
// server is unreachable. It fails when the timeout has passed, or when an object that must become ready
// reports a failure.
type Kind struct {
	Clusters *access.Clusters
	// Evaluations limits concurrent CEL expressions, each of which may use a CPU for seconds; nil
	// means no limit. The limit of runs does not apply to waiting tasks.
	Evaluations *fair.Slots
}

// With are the inputs of Wait.
type With struct {
	// Object is the object to wait for.
	Object *access.ObjectRef `json:"object,omitempty"`
	// Selector waits for all objects of a kind with these labels. At least one must exist.
	Selector *access.ObjectSelector `json:"selector,omitempty"`
	// For is the state to wait for.
	For WaitFor `json:"for"`
	// AllowStale accepts a condition or status for an earlier generation of the object. Default:
	// false, an observedGeneration, if there is one, must be the object's generation.
	AllowStale bool `json:"allowStale,omitempty"`
	// Count is how many of the selected objects must be in the state. Default: all of them.
	Count int `json:"count,omitempty"`
	// Cluster is the cluster of the objects; the run's by default.
	Cluster access.ClusterRef `json:"cluster,omitzero"`
}

// Validate checks the inputs.
func (*Kind) Validate(with json.RawMessage) []workflow.Problem {
	w, problems := task.Decode[With](with)
	if len(problems) > 0 {
		return problems
	}
	if (w.Object == nil) == (w.Selector == nil) {
		problems.Add("object", "exactly one of object and selector must be set", "set either object or selector")
	}
	if w.Object != nil {
		problems = append(problems, w.Object.Check("object")...)
	}
	if w.Selector != nil {
		problems = append(problems, w.Selector.Check("selector")...)
	}
	if w.Count < 0 || w.Count > 0 && (w.Selector == nil || w.For.State == waitGone) {
		problems.Add("count", "count is not allowed here", "use a positive count with a selector, and not with for: gone")
	}
	if w.AllowStale && w.For.State != "" {
		problems.Add("allowStale", "it has no effect for "+w.For.State, "remove it, or wait for a condition or a CEL expression")
	}
	return append(problems, w.For.check()...)
}

type output struct {
	Objects []access.ObjectRef `json:"objects,omitempty"`
}

// Run checks the objects until all of them, or Count of them, are in the state.
func (w *Kind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	with, err := task.ReadInputs[With](c, w.Validate)
	if err != nil {
		return nil, err
	}
	cluster, err := w.Clusters.Open(ctx, c, with.Cluster)
	if err != nil {
		return nil, err
	}
	var named []access.ObjectRef
	if with.Object != nil {
		named = append(named, *with.Object)
	}
	test, err := with.newTest(cluster, w.Evaluations.Slot(c.Namespace))
	if err != nil {
		return nil, err
	}
	var out output
	c.YieldSlot()
	err = access.Poll(ctx, c, func(ctx context.Context) (string, error) {
		out = output{}
		var missing []string
		err := cluster.EachOf(ctx, named, with.Selector, c.Namespace, func(ctx context.Context, ref access.ObjectRef, u *unstructured.Unstructured) error {
			says, err := test(ctx, ref, u)
			switch {
			case err != nil:
				return err
			case says == "":
				out.Objects = append(out.Objects, ref)
			default:
				missing = append(missing, says)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
		return with.missingText(len(out.Objects), missing), nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting: %w", err)
	}
	slices.SortFunc(out.Objects, access.CompareRefs)
	out.Objects = out.Objects[:min(len(out.Objects), access.MaxNamedObjects)]
	return json.Marshal(out)
}

func (w *With) missingText(satisfied int, missing []string) string {
	switch {
	case w.Count > 0 && satisfied >= w.Count:
		return ""
	case w.Count > 0:
		return fmt.Sprintf("%d of %d %s: %s", satisfied, w.Count, w.Selector, view.First(missing))
	case len(missing) > 0:
		return view.First(missing)
	case satisfied == 0 && w.For.State != waitGone:
		return "there is no " + w.Selector.String()
	default:
		return ""
	}
}

// Undo does nothing.
func (*Kind) Undo(context.Context, *task.Call) error { return nil }
