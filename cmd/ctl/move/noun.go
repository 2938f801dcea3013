package move

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/show"
	"scute.dev/eventlog"
	"scute.dev/mover"
)

type (
	place = kit.Place[*v1alpha1.Move]
	noun  = kit.Noun[*v1alpha1.Move]
)

// Commands are those about moves, by their verbs.
func Commands(env *cli.Env) kit.Verbs {
	n := newNoun()
	return kit.Verbs{
		"get": kit.Get(env, n), "describe": kit.Describe(env, n), "watch": kit.Watch(env, n), "logs": kit.Logs(env, n),
		"create": newCmdCreate(env, n), "abort": newCmdAbort(env, n), "decide": newCmdDecide(env, n),
	}
}

func newNoun() *noun {
	return &noun{
		Name: "move", Plural: "moves", Short: []string{"mv"}, A: "a move", Resource: "move.scute.dev",
		InCluster: InCluster, InLog: inLog,
		Key:   key,
		Phase: func(m *v1alpha1.Move) string { return string(m.Status.Phase) },
		Log: func(m *v1alpha1.Move) (eventlog.Aggregate, bool) {
			return eventlog.Aggregate{Kind: eventlog.KindMove, ID: m.Status.MoveID}, m.Status.MoveID != ""
		},
		Table: func(v show.View, list []*v1alpha1.Move, namespaces, wide bool) []string {
			return view{v}.table(list, namespaces, wide)
		},
		Data: kit.Resources[*v1alpha1.Move]("Move", func() client.ObjectList { return &v1alpha1.MoveList{} }),
		Describe: func(_ context.Context, p *place, m *v1alpha1.Move) ([]string, error) {
			return Describe(p.View(), m), nil
		},
		Standing: func(v show.View, m *v1alpha1.Move) []string { return append(view{v}.standing(m), view{v}.lists(m)...) },
		News:     news, Over: over,
		Conditions: func(m *v1alpha1.Move) []metav1.Condition { return m.Status.Conditions },
		Bad:        func(m *v1alpha1.Move) bool { return m.Status.Phase != mover.PhaseSucceeded },
		Goes:       "the move continues without being watched",
		WatchLong:  "Exit status: 0 the move succeeded, 1 it failed or was rolled back, 130 interrupted (the move continues).",
	}
}

func key(m *v1alpha1.Move) types.NamespacedName { return kit.Key(m.Namespace, m.Name) }

// news are a line for the state of a move, of which the counts change all the time, and one for each finding.
func news(m *v1alpha1.Move) []kit.News {
	out := []kit.News{{Text: fact(m), Counting: string(cmp.Or(m.Status.Phase, mover.PhasePending))}}
	for i, f := range m.Status.Findings {
		text := fmt.Sprintf("%s: %s: %s; remedy: %s", f.Severity, f.Field, f.Message, f.Remedy)
		out = append(out, kit.News{About: fmt.Sprint("#", i), Text: text})
	}
	return out
}
