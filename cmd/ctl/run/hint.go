package run

import (
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/runs"
)

// exitCode that a phase calls for.
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

// where are the flags that lead to a run again.
func (d *deps) where(namespace string) string {
	var out []string
	switch {
	case d.Flags.Local && d.Flags.Dir == reach.LocalDir:
		out = append(out, "--local")
	case d.Flags.Local:
		out = append(out, "--local --log "+quote(d.Flags.Dir))
	case d.Flags.Dir != "":
		out = append(out, "--log "+quote(d.Flags.Dir))
	case d.Flags.URL != "":
		out = append(out, "--nats "+quote(d.Flags.URL))
	}
	// Of a log alone, a name leads to its run in whatever namespace; of a cluster it is looked for in that of the context.
	if namespace != "" && (namespace != "default" || !d.Flags.LogAlone() || d.Flags.Namespace != "") {
		out = append(out, "-n "+namespace)
	}
	return strings.Join(out, " ")
}

// hint is a command line that fits, as the user would type it.
func (d *deps) hint(namespace string, words ...string) string {
	line := d.Env.Name + " " + strings.Join(words, " ")
	if where := d.where(namespace); where != "" {
		line += " " + where
	}
	return "`" + line + "`"
}

func quote(s string) string {
	if s != "" && !strings.ContainsAny(s, " '\"$&|;<>()*?`\\\t\n") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// waits is the command that goes on with a task that waits. Why it waits is known from the log alone.
func (d *deps) waits(r *runs.Run, task string) string {
	actions := actions()
	if r.State != nil {
		actions = r.State.Actions(task)
	}
	if len(actions) == 0 {
		return d.hint(r.Namespace, "resume", "run", r.Name, "--task", task)
	}
	return d.hint(r.Namespace, "decide", r.Name, "--task", task, "--action", strings.Join(actions, "|"), "--reason", "'...'")
}

// next are the commands with which a human goes on with a run that rests, one a line.
func (d *deps) next(r *runs.Run) []string {
	hint := func(words ...string) string { return d.hint(r.Namespace, words...) }
	look := hint("describe", "run", r.Name) + " shows what happened"
	switch r.Phase() {
	case v1alpha1.RunAborted:
		return []string{look, hint("resume", "run", r.Name) + " goes on, when the cause is mended: what is done is skipped"}
	case v1alpha1.RunPaused, v1alpha1.RunPartiallyPaused:
		var out []string
		for _, t := range r.Tasks() {
			if t.Phase == v1alpha1.TaskPaused {
				out = append(out, d.waits(r, t.Name))
			}
			if len(out) == 3 {
				break
			}
		}
		return append(append([]string{look}, out...), hint("resume", "run", r.Name)+" goes on")
	case v1alpha1.RunRollbackFailed:
		for _, t := range r.Tasks() {
			if t.Phase == v1alpha1.TaskUndoFailed {
				return []string{
					look, hint("decide", r.Name, "--task", t.Name, "--action", strings.Join(undoActions(), "|"), "--reason", "'...'"),
					hint("resume", "run", r.Name) + " goes on then",
				}
			}
		}
		return []string{look}
	case v1alpha1.RunFailed, v1alpha1.RunRolledBack, v1alpha1.RunDegraded, v1alpha1.RunStranded:
		return []string{look}
	default:
		return nil
	}
}
