package runner

import (
	"context"
	"slices"
	"time"

	"scute.dev/internal/redact"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

// verification is a succeeded step whose result can be verified.
type verification struct {
	kind task.Verifier
	call *task.Call
}

func (d *drive) verifications() []verification {
	var list []verification
	removed := d.removalCheck()
	workflow.EachSucceeded(d.a.State, func(e workflow.Effect) {
		kind, ok := d.kinds[e.Spec.Kind].(task.Verifier)
		if !ok {
			return
		}
		c := d.call(e)
		c.Removed = removed
		filled, err := workflow.Fill(e.With, d.a.State.Output)
		if err != nil {
			return
		}
		c.With = filled
		list = append(list, verification{kind, c})
	})
	return list
}

// removalCheck returns a function that reports whether a step of the run may have deleted an object.
func (d *drive) removalCheck() func(task.Object) bool {
	type removal struct {
		kind task.Remover
		call *task.Call
	}
	var list []removal
	workflow.EachStarted(d.a.State, func(e workflow.Effect) {
		if kind, ok := d.kinds[e.Spec.Kind].(task.Remover); ok {
			c := d.call(e)
			if c.With, _ = workflow.Fill(e.With, d.a.State.LatestOutput); c.With == nil {
				c.With = e.With
			}
			list = append(list, removal{kind, c})
		}
	})
	return func(o task.Object) bool {
		return slices.ContainsFunc(list, func(r removal) bool { return r.kind.Removes(r.call, o) })
	}
}

// verifyTimeout bounds the verification of one step.
const verifyTimeout = 2 * time.Minute

// verify verifies the steps one after the other, and returns the tasks whose results are gone. A step counts as valid if its verification fails.
func verify(ctx context.Context, list []verification) []workflow.Gone {
	look := func(v verification) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
		defer cancel()
		return v.kind.Verify(ctx, v.call)
	}
	var gone []workflow.Gone
	for _, v := range list {
		why, err := look(v)
		switch {
		case err != nil:
			v.call.Logger.Warn("cannot check whether the result of a finished task still exists", "error", redact.Message(err.Error()))
		case why != "":
			gone = append(gone, workflow.Gone{Task: v.call.Task, Reason: redact.Message(why)})
		}
	}
	return gone
}
