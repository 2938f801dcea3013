package runner

import (
	"context"
	"slices"
	"time"

	"scute.dev/internal/redact"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

type verification struct {
	kind task.Verifier
	call *task.Call
}

func (d *drive) verifications() (list []verification) {
	type removal struct {
		kind task.Remover
		call *task.Call
	}
	var removals []removal
	removed := func(o task.Object) bool {
		return slices.ContainsFunc(removals, func(r removal) bool { return r.kind.Removes(r.call, o) })
	}
	workflow.EachStep(d.a.State, func(e workflow.Effect, done bool) {
		kind := d.kinds[e.Spec.Kind]
		if remover, ok := kind.(task.Remover); ok {
			c := d.call(e)
			if c.With, _ = workflow.Fill(e.With, d.a.State.LatestOutput); c.With == nil {
				c.With = e.With
			}
			removals = append(removals, removal{remover, c})
		}
		if verifier, ok := kind.(task.Verifier); ok && done {
			c := d.call(e)
			c.Removed = removed
			var err error
			if c.With, err = workflow.Fill(e.With, d.a.State.Output); err == nil {
				list = append(list, verification{verifier, c})
			}
		}
	})
	return list
}

const verifyTimeout = 2 * time.Minute

// verify returns the tasks whose results no longer exist. If a verification fails with an error,
// the step counts as valid.
func verify(ctx context.Context, list []verification) []workflow.Gone {
	var gone []workflow.Gone
	for _, v := range list {
		ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
		why, err := v.kind.Verify(ctx, v.call)
		cancel()
		switch {
		case err != nil:
			v.call.Logger.Warn("cannot check whether the result of a finished task still exists", "error", redact.Message(err.Error()))
		case why != "":
			gone = append(gone, workflow.Gone{Task: v.call.Task, Reason: redact.Message(why)})
		}
	}
	return gone
}
