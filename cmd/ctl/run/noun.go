package run

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

type (
	session = kit.Session[*Run]
	noun    = kit.Noun[*Run]
)

// Options are settings for test builds.
type Options struct {
	// WrapLog wraps the log of local runs, for fault points. It may be nil.
	WrapLog func(aggregate.Log) aggregate.Log
}

// Commands returns the commands about runs, by verb.
func Commands(env *cli.Env, o Options) kit.Verbs {
	n := newNoun()
	return kit.Verbs{
		"get": kit.Get(env, n), "describe": kit.Describe(env, n), "watch": kit.Watch(env, n), "logs": kit.Logs(env, n),
		"pause": newCmdPause(env, n), "resume": newCmdResume(env, n, o), "decide": newCmdDecide(env, n), "abort": newCmdAbort(env, n, o), "migrate": newCmdMigrate(env, n),
	}
}

func newNoun() *noun {
	return &noun{
		Name: "run", Plural: "runs", Short: []string{"workflowrun", "workflowruns", "wfr"}, WithArticle: "a run", Resource: "workflowrun.scute.dev",
		New: func() client.Object { return &v1alpha1.WorkflowRun{} }, NewList: func() client.ObjectList { return &v1alpha1.WorkflowRunList{} },
		Convert: fromResource, AddLogDetails: withLogDetails, PrintOutput: printed,
		Kind: eventlog.KindRun, NewFold: func(log *connect.Log, id string) kit.Fold[*Run] { return newFold(log, id) },
		// A run is as large as its definition, so only the newest run of each matching name is read.
		Group: func(id string) string { return keyOf(id).String() },
		MayContain: func(id string, key types.NamespacedName) bool {
			n := keyOf(id)
			return (key.Name == "" || key.Name == n.Name) && (key.Namespace == "" || key.Namespace == n.Namespace)
		},
		Key:   key,
		Phase: func(r *Run) string { return string(r.Phase()) },
		Log: func(r *Run) (eventlog.Aggregate, bool) {
			return eventlog.Aggregate{Kind: eventlog.KindRun, ID: r.ID}, r.ID != ""
		},
		Tasks: func(r *Run) (names []string) {
			for _, t := range r.Tasks() {
				names = append(names, t.Name+"\t"+string(t.Phase))
			}
			return names
		},
		Header: kit.Row{Cells: []string{"NAME", "PHASE", "DONE", "FAILED", "TOOK", "AGE"}, Wide: []string{"RUN", "MESSAGE"}},
		Row:    row,
		Data:   data, Describe: describe,
		StatusLines: func(v kit.View, r *Run) []string {
			return append(append(output{v}.statusLines(r), ""), output{v}.tree(r, r.Status.Tasks, false)...)
		},
		Updates:    updates,
		Conditions: func(r *Run) []metav1.Condition { return r.Status.Conditions },
		IsFinished: (*Run).isIdle,
		HasFailed:  func(r *Run) bool { return r.refused() || exitCode(r.Phase()) != cli.ExitOK },
		Finish: func(_ context.Context, p *session, r *Run, format *cli.Format) error {
			return finish(p.Kit, r, format)
		},
		AfterWatch: "the run continues",
		ContinueHint: func(p *session, at types.NamespacedName) string {
			return "to continue it: " + p.Hint("resume", at)
		},
		GetLong: `If several runs had the name, the newest is shown.

With -o json one run is an object with its name, phase, runID, startedAt, finishedAt and all its tasks. Several runs are
the items of a list.`,
		WatchLong: `The exit status is that of scutectl run: 0 Succeeded, 1 failed, 3 Paused, 4 Degraded, 130 interrupted (the run continues).`,
	}
}

func key(r *Run) types.NamespacedName { return kit.Key(r.Namespace, r.Name) }

func data(list []*Run, one bool) any {
	if one {
		return list[0].report()
	}
	items := make([]report, len(list))
	for i, r := range list {
		items[i] = r.report()
	}
	return map[string]any{"items": items}
}

// withLogDetails returns the run as read from the log. If the log cannot be reached, it returns r
// unchanged.
func withLogDetails(ctx context.Context, p *session, r *Run) *Run {
	if r.State != nil || r.ID == "" {
		return r
	}
	err := p.ConnectLog(ctx)
	if err == nil {
		var f *Fold
		if f, err = fold(ctx, p.Log, r.ID); err == nil && f.State.IsDefined() {
			f.CreatedAt = r.CreatedAt
			return f.Refresh()
		}
	}
	if err != nil {
		p.Env.Notef("Showing the status of the WorkflowRun, because the log could not be reached: %v", err)
	}
	return r
}

func describe(_ context.Context, p *session, r *Run) ([]string, error) {
	lines := output{p.View()}.describe(r)
	if next := nextCommands(p.Kit, r); len(next) > 1 && !p.At.IsSet() {
		lines = append(lines, "", "To continue:")
		for _, line := range next[1:] { // the first is describe
			lines = append(lines, "  "+line)
		}
	}
	return lines, nil
}

func updates(r *Run) []kit.Update {
	var out []kit.Update
	for _, t := range r.Status.Tasks {
		text := string(t.Phase)
		if t.Attempts > 1 {
			text += fmt.Sprintf(" (attempt %d)", t.Attempts)
		}
		if t.Message != "" {
			text += ": " + t.Message
		}
		if t.Phase == v1alpha1.TaskPending && t.Message == "" {
			text = ""
		}
		out = append(out, kit.Update{Part: t.Name, Text: text})
	}
	return append(out, kit.Update{Text: string(r.Phase())})
}
