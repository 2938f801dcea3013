package run

import (
	"slices"
	"strconv"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/workflow"
)

// approve is the kind of task that asks an operator for approval.
const approve = "Approve"

func exitCode(p v1alpha1.RunPhase) int {
	switch p {
	case v1alpha1.RunSucceeded:
		return cli.ExitOK
	case v1alpha1.RunPaused, v1alpha1.RunPartiallyPaused:
		return cli.ExitPaused
	case v1alpha1.RunDegraded:
		return cli.ExitDegraded
	default:
		return cli.ExitFailed
	}
}

func hint(k *kit.Kit, r *Run, verb string, more ...string) string {
	return k.Hint(r.Namespace, append([]string{verb, "run", r.Name}, more...)...)
}

// DecideCommand returns the command with which a user decides about a waiting task, or releases it.
// Only the log contains the possible actions. If the log was not read, a task of kind Approve is
// assumed to ask for approval.
func DecideCommand(k *kit.Kit, r *Run, task string) string {
	actions := actions()
	if r.State != nil {
		actions = r.State.Actions(task)
	} else if slices.ContainsFunc(r.Tasks(), func(t v1alpha1.TaskStatus) bool { return t.Name == task && t.Kind == approve }) {
		actions = workflow.PossibleActions(true, true)
	}
	if len(actions) == 0 {
		return hint(k, r, "resume", "--task", task)
	}
	return decide(k, r, task, actions)
}

func decide(k *kit.Kit, r *Run, task string, actions []string) string {
	asked := 0
	for _, t := range r.Tasks() {
		if t.Name == task {
			asked = t.Question
		}
	}
	line := hint(k, r, "decide", "--task", task, "--question", strconv.Itoa(asked), "--action", actions[0], "--reason", "...")
	return line + "; or with --action " + strings.Join(actions[1:], ", ")
}

// continueCommands returns the commands that continue a local run after a decision. A run of a
// daemon needs none.
func continueCommands(k *kit.Kit, r *Run) []string {
	if !r.Local {
		return nil
	}
	return []string{hint(k, r, "resume") + " then continues the run"}
}

// nextCommands returns commands for an idle run: first the one that shows the run, then those that
// continue it.
func nextCommands(k *kit.Kit, r *Run) []string {
	look := hint(k, r, "describe") + " shows what happened"
	switch r.Phase() {
	case v1alpha1.RunAborted:
		return []string{look, hint(k, r, "resume") + " continues the run when the cause is fixed. Finished tasks are skipped"}
	case v1alpha1.RunPaused, v1alpha1.RunPartiallyPaused:
		out := []string{look}
		for _, t := range r.Tasks() {
			if t.Phase == v1alpha1.TaskPaused && len(out) <= 3 {
				out = append(out, DecideCommand(k, r, t.Name))
			}
		}
		if len(out) == 1 || r.State != nil && workflow.Summarize(r.State).Paused {
			return append(out, hint(k, r, "resume")+" continues the run")
		}
		return append(out, continueCommands(k, r)...)
	case v1alpha1.RunRollbackFailed:
		for _, t := range r.Tasks() {
			if t.Phase == v1alpha1.TaskUndoFailed {
				return append([]string{look, decide(k, r, t.Name, undoActions())}, continueCommands(k, r)...)
			}
		}
		return []string{look}
	case v1alpha1.RunFailed, v1alpha1.RunRolledBack, v1alpha1.RunDegraded, v1alpha1.RunStranded:
		return []string{look}
	default:
		return nil
	}
}
