package move

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/mover"
	"scute.dev/mover/runner"
)

type (
	session = kit.Session[*v1alpha1.Move]
	noun    = kit.Noun[*v1alpha1.Move]
)

// Commands returns the commands about moves by verb.
func Commands(env *cli.Env) kit.Verbs {
	n := newNoun()
	return kit.Verbs{
		"get": kit.Get(env, n), "describe": kit.Describe(env, n), "watch": kit.Watch(env, n), "logs": kit.Logs(env, n),
		"create": newCmdCreate(env, n), "abort": newCmdAbort(env, n), "decide": newCmdDecide(env, n),
	}
}

func newNoun() *noun {
	return kit.Resource(&noun{
		Name: "move", Plural: "moves", Short: []string{"mv"}, WithArticle: "a move", Kind: eventlog.KindMove,
		New: func() client.Object { return &v1alpha1.Move{} }, NewList: func() client.ObjectList { return &v1alpha1.MoveList{} },
		NewFold: func(_ *connect.Log, id string) kit.Fold[*v1alpha1.Move] {
			return &viewFold{id: id, view: runner.NewMoves()}
		},
		Header: kit.Row{Cells: []string{"NAME", "PHASE", "SINCE", "CLUSTERS", "CREATED", "DELETED", "RESUMED", "AGE"}, Wide: []string{"MESSAGE"}},
		Row:    row, Updates: updates, IsFinished: finished,
		HasFailed:  func(m *v1alpha1.Move) bool { return m.Status.Phase != mover.PhaseSucceeded },
		AfterWatch: "the move continues",
		WatchLong:  "Exit status: 0 the move succeeded, 1 it failed or was rolled back, 130 interrupted (the move continues).",
	}, "Move", status)
}

func key(m *v1alpha1.Move) types.NamespacedName { return kit.Key(m.Namespace, m.Name) }

// updates returns one update for the state, in which counts change often, and one for each finding.
func updates(m *v1alpha1.Move) []kit.Update {
	out := []kit.Update{{Text: fact(m), ThrottleKey: phase(m)}}
	for i, f := range m.Status.Findings {
		text := fmt.Sprintf("%s: %s: %s; remedy: %s", f.Severity, f.Field, f.Message, f.Remedy)
		out = append(out, kit.Update{Part: fmt.Sprint("#", i), Text: text})
	}
	return out
}
