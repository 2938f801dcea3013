package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/workflow"
)

type migrateOptions struct {
	*deps
	File, Policy          string
	Plan, Yes             bool
	Keep, Rerun, Backfill []string

	policy v1alpha1.FailurePolicy // from Policy or the environment
}

func newCmdMigrate(env *cli.Env, n *noun) *cobra.Command {
	o := &migrateOptions{deps: &deps{noun: n}}
	cmd := o.command(env, &cobra.Command{
		Use:   " -f FILE",
		Short: "Adopt an edited manifest in an unfinished run",
		Long: `Adopt an edited manifest in an unfinished run. A run continues with the definition that it began with, even if the file was
edited since. This command replaces the definition by one event. It first shows a plan for each task:

  unchanged          its outcome is kept
  changed, done      you must choose --keep TASK or --rerun TASK
  changed, not done  it runs with the new definition; a held task stays held
  changed, unknown   it may run at most once, and its outcome is not known: choose --keep TASK or --rerun TASK
  added              it runs; if tasks that have run need it, you must confirm with --backfill TASK
  removed, done      only its undo is kept, for a rollback

Pause the run before you migrate it.`,
		Example: kit.Examples(env, "$ migrate run create-prod --local -f edited.yaml --plan", "$ migrate run create-prod --local -f edited.yaml --rerun install-cni --yes"),
	}, o.run)
	f := cmd.Flags()
	f.StringVarP(&o.File, "file", "f", "", "Edited manifest; - is the standard input")
	policyVar(cmd, &o.Policy, "")
	f.BoolVar(&o.Plan, "plan", false, "Show the plan, and change nothing")
	kit.YesVar(f, &o.Yes)
	f.StringSliceVar(&o.Keep, "keep", nil, "Keep the outcome of this changed task; may be repeated")
	f.StringSliceVar(&o.Rerun, "rerun", nil, "Run this changed task again; may be repeated")
	f.StringSliceVar(&o.Backfill, "backfill", nil, "Run this new task although tasks that need it have run; may be repeated")
	return cmd
}

func (o *migrateOptions) run(ctx context.Context, name string) error {
	if o.File == "" {
		return cli.Usagef("-f is missing: name the edited manifest, or - for the standard input")
	}
	var err error
	if o.policy, err = o.defaultPolicy(o.Policy); err != nil {
		return err
	}
	w, problems, err := o.readManifest(o.File)
	if err != nil {
		return err
	}
	if w.Name != name {
		return cli.Usagef("%s is the manifest of %s, not of %s", o.File, w.Name, name)
	}
	return o.withRun(ctx, name, func(ctx context.Context, at *session, f *Fold) error {
		return o.migrate(ctx, at, f, w, problems)
	})
}

func (o *migrateOptions) migrate(ctx context.Context, at *session, f *Fold, w *v1alpha1.WorkflowRun, problems []workflow.Problem) error {
	d, err := o.definition(ctx, o.environment(nil, "", o.policy), f.Namespace, w, problems)
	if err != nil {
		return err
	}
	if d.Hash() == f.State.Hash {
		o.Env.Notef("The run already has this definition: there is nothing to adopt.")
		return nil
	}
	names := make([]string, len(d.Tasks))
	for i := range d.Tasks {
		names[i] = d.Tasks[i].Name
	}
	for _, task := range slices.Concat(o.Keep, o.Rerun, o.Backfill) {
		if !slices.Contains(names, task) {
			return cli.Usagef("--keep, --rerun or --backfill names task %q, which %s does not have%s", task, o.File, cli.Suggest(task, names))
		}
	}
	plan, decided := workflow.Plan(f.State, d, workflow.Choices{Keep: o.Keep, Rerun: o.Rerun, Backfill: o.Backfill})
	if err := o.Print(o.planLines(plan, f.State.Definition(), d)); err != nil {
		return err
	}
	switch {
	case !decided:
		return fmt.Errorf("run %s: the plan has undecided tasks: add --keep, --rerun or --backfill as the plan asks for", f.ID)
	case o.Plan:
		return nil
	case o.File == "-" && !o.Yes:
		return cli.Usagef("nothing was changed: add --yes to adopt the manifest by this plan")
	case !o.Yes:
		if err := o.Confirm("--yes", "Adopt it?", "adopt the manifest by this plan"); err != nil {
			return err
		}
	}
	return o.record(ctx, at, f, workflow.Migrate{To: d, Plan: plan}, "migrated")
}

// checkEdited returns an error, because the manifest was edited after the run began. It prints how
// a migration would adopt the new manifest.
func (d *deps) checkEdited(r *Run, to *workflow.Definition, file string) error {
	if file == "-" {
		file = "FILE"
	}
	plan, _ := workflow.Plan(r.State, to, workflow.Choices{})
	for _, line := range d.planLines(plan, r.State.Definition(), to) {
		d.Env.Notef("%s", line)
	}
	d.Env.Notef("%s: the manifest or the default policy has changed since run %s began: nothing was started.", d.Env.Name, r.ID)
	d.Env.Notef("To continue with the original manifest: %s", d.Hint(r.Namespace, "resume", "run", r.Name))
	d.Env.Notef("To adopt the new manifest, by the plan above: %s", d.Hint(r.Namespace, "migrate", "run", r.Name, "-f", file))
	return cli.SilentExit(cli.ExitUsage)
}

func (d *deps) planLines(plan []workflow.Change, before, after *workflow.Definition) []string {
	v := d.View()
	t := cli.Table{Header: []string{"TASK", "CHANGE", "ACTION", "NOTE"}, Wrap: 1}
	for _, c := range plan {
		as := cli.Plain
		switch c.Action {
		case workflow.Undecided:
			as = cli.Red
		case workflow.Rerun, workflow.Run:
			as = cli.Cyan
		}
		t.Add(c.Task, string(c.Kind), v.Paint.Text(as, string(c.Action)), c.Note)
	}
	lines := t.Lines(v.Paint, v.Width)
	fields := fieldChanges(before, after, plan)
	if len(fields) == 0 {
		return lines
	}
	t = cli.Table{Header: []string{"TASK", "FIELD", "BEFORE", "AFTER"}, Wrap: 1}
	for _, f := range fields {
		t.Add(f.Task, f.Field, cli.Clean(f.Before), cli.Clean(f.After))
	}
	return append(append(lines, ""), t.Lines(v.Paint, v.Width)...)
}

// Migration describes how a run adopted another definition.
type Migration struct {
	At    time.Time
	Actor string
	// From and To are hashes of definitions.
	From, To string
	// Changes lists what happened to each task. It omits unchanged tasks that were kept or have not
	// run.
	Changes []workflow.Change
	Fields  []fieldChange
}

// fieldChange contains the values of a field in two definitions, as JSON. A value is "" if the
// definition lacks the field.
type fieldChange struct{ Task, Field, Before, After string }

func migration(e workflow.Migrated, from string, before, after *workflow.Definition) Migration {
	m := Migration{From: from, To: e.Hash, Fields: fieldChanges(before, after, e.Plan)}
	for _, c := range e.Plan {
		if c.Kind != workflow.Unchanged || c.Action != workflow.Keep && c.Action != workflow.Run {
			m.Changes = append(m.Changes, c)
		}
	}
	return m
}

func fieldChanges(before, after *workflow.Definition, plan []workflow.Change) (all []fieldChange) {
	for _, c := range plan {
		if c.Kind != workflow.Changed {
			continue
		}
		old, now := fieldsOf(before, c.Task), fieldsOf(after, c.Task)
		names := maps.Clone(old)
		maps.Copy(names, now)
		for _, field := range slices.Sorted(maps.Keys(names)) {
			if old[field] != now[field] {
				all = append(all, fieldChange{Task: c.Task, Field: field, Before: old[field], After: now[field]})
			}
		}
	}
	return all
}

// fieldsOf returns the fields of a task by path. As in a manifest, the paths of fields of the
// task's own step have no prefix.
func fieldsOf(d *workflow.Definition, name string) map[string]string {
	fields := make(map[string]string)
	i := slices.IndexFunc(d.Tasks, func(t workflow.Task) bool { return t.Name == name })
	if i < 0 {
		return fields
	}
	task := d.Tasks[i]
	for _, step := range task.Steps {
		prefix := step.Name
		if step.Name = ""; prefix != "" {
			prefix += "."
		}
		flatten(fields, prefix, step)
	}
	task.Steps = nil
	flatten(fields, "", task)
	return fields
}

// flatten adds the fields of an object to fields, by path. It descends into objects but not into
// lists.
func flatten(fields map[string]string, prefix string, object any) {
	text, err := json.Marshal(object)
	if err != nil {
		return // cannot happen: it was decoded from JSON
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return
	}
	for name, value := range members {
		if bytes.HasPrefix(value, []byte("{")) {
			flatten(fields, prefix+name+".", value)
		} else if name != "steps" || prefix != "" {
			fields[prefix+name] = string(value)
		}
	}
}
