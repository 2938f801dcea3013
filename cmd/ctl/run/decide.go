package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/kube/document"
	"scute.dev/workflow"
)

type decideOptions struct {
	*deps
	Action, Output, With string
	Question             int
}

// actions returns the possible decisions about a task that waits because it failed.
func actions() []string { return workflow.PossibleActions(false, true) }

func undoActions() []string {
	return []string{string(workflow.ActRetryUndo), string(workflow.ActMarkUndone), string(workflow.ActAbandon)}
}

func allActions() []string { return append(actions(), undoActions()...) }

func newCmdDecide(env *cli.Env, n *noun) *cobra.Command {
	o := &decideOptions{deps: &deps{noun: n}}
	cmd := o.command(env, &cobra.Command{
		Use:   " --task TASK --action ACTION --reason WHY",
		Short: "Decide about a task that waits for an operator",
		Long: `Decide about a task that waits for an operator: because it failed and its policy is Pause, because it asks for an
approval, because its outcome is not known, or because its undo failed.

  retry             try the task again, with other inputs if --with is set
  ignore            continue as if the task had succeeded
  ignore-children   skip the tasks that need its success, and continue with all others
  succeed           mark the task as succeeded, or approve the step that asks; --output sets the output
  rollback          undo the tasks of this run
  abort             stop the run; it can be resumed
  retry-undo        try the undo again
  mark-undone       mark the task as undone, because you have undone it by hand
  abandon           stop the rollback; tasks that are not undone stay as they are

--with is a JSON merge patch (RFC 7386) for the inputs of the task, in JSON or YAML, or @FILE: it replaces the fields that it
names, and removes a field that it sets to null. The result is checked before it is recorded.

With --question the decision is refused if the task asks another question now: somebody else has decided, or the task was tried
again, after you looked at it.

The decision is an event in the log, with your name and your reason. A local run continues when it is resumed.

The noun may be omitted: decide NAME is decide run NAME.`,
		Example: kit.Examples(env,
			`$ decide run create-prod --local --task install-cni --action retry --with '{"env": {"VERSION": "1.3"}}' --reason 'wrong version'`,
			`$ decide run upgrade-prod -n fleet --task check --action succeed --output '{"ok": true}' --reason 'checked by hand'`),
	}, o.run)
	f := cmd.Flags()
	kit.TaskVar(cmd, o.Kit, n, &o.Task, "Task that the decision is about")
	f.IntVar(&o.Question, "question", 0, "Decide only if the task still asks the question with this number")
	f.StringVar(&o.Action, "action", "", "Decision: "+strings.Join(allActions(), ", "))
	f.StringVar(&o.Output, "output", "", "Output of the task, in JSON, with the action succeed")
	f.StringVar(&o.With, "with", "", "Patch of the task's inputs, or @FILE, with the action retry")
	cli.ReasonVar(f, &o.Reason)
	_ = cmd.RegisterFlagCompletionFunc("action", cobra.FixedCompletions(allActions(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *decideOptions) validate() error {
	switch {
	case o.Task == "":
		return cli.Usagef("--task is missing: name the task that the decision is about")
	case !slices.Contains(allActions(), o.Action):
		return cli.Usagef("--action is %q: it must be one of %s", o.Action, strings.Join(allActions(), ", "))
	case o.Question < 0:
		return cli.Usagef("--question is %d: it must be the number of a question, or omitted", o.Question)
	case o.Output != "" && o.Action != string(workflow.ActSucceed):
		return cli.Usagef("--output needs --action succeed")
	case o.Output != "" && !json.Valid([]byte(o.Output)):
		return cli.Usagef("--output is not JSON: put a string in double quotes, for example --output '\"done\"'")
	case o.With != "" && o.Action != string(workflow.ActRetry):
		return cli.Usagef("--with needs --action retry")
	}
	return o.requireReason()
}

func (o *decideOptions) run(ctx context.Context, name string) error {
	if err := o.validate(); err != nil {
		return err
	}
	return o.withRun(ctx, name, o.decide)
}

func (o *decideOptions) decide(ctx context.Context, at *session, f *Fold) (err error) {
	decision := workflow.Decision{Task: o.Task, Question: o.Question, Action: workflow.Action(o.Action), Reason: o.Reason}
	if o.Output != "" {
		decision.Output = json.RawMessage(o.Output)
	}
	if o.With != "" {
		if decision.With, err = o.patchedInputs(ctx, f); err != nil {
			return err
		}
	}
	return o.record(ctx, at, f, decision, o.Action+" of task "+o.Task+" decided")
}

// patchedInputs returns the inputs of the task's step with the patch applied. It checks them.
func (o *decideOptions) patchedInputs(ctx context.Context, f *Fold) (json.RawMessage, error) {
	patch := []byte(o.With)
	if path, isFile := strings.CutPrefix(o.With, "@"); isFile {
		var err error
		if patch, err = os.ReadFile(path); err != nil {
			return nil, cli.Usagef("--with: %w", err)
		}
	}
	if err := document.CheckBounds(patch); err != nil {
		return nil, cli.Usagef("--with: %w", err)
	}
	patch, err := yaml.YAMLToJSONStrict(patch) //nolint:forbidigo // it is bounded
	if err != nil {
		return nil, cli.Usagef("--with is neither JSON nor YAML: %w", err)
	}
	kind, with, ok := f.State.CurrentInputs(o.Task)
	if !ok {
		return nil, cli.Usagef("run %s has no task %q", f.ID, o.Task)
	}
	if len(with) == 0 {
		with = json.RawMessage("{}")
	}
	merged, err := jsonpatch.MergePatch(with, patch)
	if err != nil {
		return nil, cli.Usagef("--with is not a merge patch: %w", err)
	}
	kinds, err := o.environment(nil, "", "").KindsFor(ctx, f.State.Header)
	if err != nil {
		return nil, err
	}
	if kinds[kind] == nil {
		return nil, fmt.Errorf("this scutectl does not have the kind %s, so it cannot check the inputs: use the version that the run needs", kind)
	}
	problems := kinds[kind].Validate(merged)
	for i := range problems {
		problems[i].Task, problems[i].Field = o.Task, "with."+problems[i].Field
	}
	if hasErrors(problems) {
		for _, p := range problems {
			o.Env.Notef("%s", p)
		}
		o.Env.Notef("%s: the patched inputs are not valid: nothing was decided", o.Env.Name)
		return nil, cli.SilentExit(cli.ExitUsage)
	}
	return merged, nil
}
