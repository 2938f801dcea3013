package remediation

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

type (
	session = kit.Session[*v1alpha1.SurgeRemediation]
	noun    = kit.Noun[*v1alpha1.SurgeRemediation]
)

// Commands returns the commands about remediations, by verb.
func Commands(env *cli.Env) kit.Verbs {
	n := newNoun()
	return kit.Verbs{
		"get": kit.Get(env, n), "describe": kit.Describe(env, n), "watch": kit.Watch(env, n), "logs": kit.Logs(env, n),
		"hold": newCmdHold(env, n), "release": newCmdRelease(env, n), "abort": newCmdAbort(env, n),
	}
}

func newNoun() *noun {
	return kit.Resource(&noun{
		Name: "remediation", Plural: "remediations", Short: []string{"rem", "srem"}, WithArticle: "a machine", Kind: eventlog.KindRemediation,
		New:      func() client.Object { return &v1alpha1.SurgeRemediation{} },
		NewList:  func() client.ObjectList { return &v1alpha1.SurgeRemediationList{} },
		NewFold:  func(*connect.Log, string) kit.Fold[*v1alpha1.SurgeRemediation] { return NewFold() },
		GetEnded: getEnded, Log: aggregate, Events: events, Row: row, Describe: describe, IsFinished: finished,
		Header: kit.Row{
			Cells: []string{"MACHINE", "PHASE", "DECISION", "REPLACEMENT", "ETCD", "AGE"},
			Wide:  []string{"CLUSTER", "OWNER", "POLICY", "TRIES", "MESSAGE"},
		},
		MayContain: func(id string, key types.NamespacedName) bool { // search all owners of the namespace: a recreated owner has other machines
			return key.Namespace == "" || strings.HasPrefix(id, key.Namespace+"/")
		},
		StatusLines: func(v kit.View, r *v1alpha1.SurgeRemediation) []string { return output{v}.statusLines(r) },
		Updates:     func(r *v1alpha1.SurgeRemediation) []kit.Update { return []kit.Update{{Text: factOf(r)}} },
		HasFailed:   func(r *v1alpha1.SurgeRemediation) bool { return !succeeded(r.Status.Phase) },
		AfterWatch:  "the remediation continues",
		GetLong: `A remediation has the name of its machine.

A remediation that has ended is deleted with its machine, and so is one whose machine was deleted before its replacement was ready.
The log keeps them: show one by its name, or list those of a log with --log or --nats.`,
		DescribeLong: `It shows which rule decided, and on what evidence. Nothing is remediated unless a RepairPolicy selects the cluster.`,
		WatchLong:    `Exit status: 0 the machine was replaced, or is healthy again; 1 it was not; 130 interrupted (the remediation continues).`,
	}, "SurgeRemediation", func(r *v1alpha1.SurgeRemediation) kit.Status {
		return kit.Status{Phase: string(r.Status.Phase), Conditions: r.Status.Conditions}
	})
}

func key(r *v1alpha1.SurgeRemediation) types.NamespacedName { return kit.Key(r.Namespace, r.Name) }

func aggregate(r *v1alpha1.SurgeRemediation) (eventlog.Aggregate, bool) {
	return ownerOf(r.Status.RemediationID)
}

func describe(ctx context.Context, p *session, r *v1alpha1.SurgeRemediation) ([]string, error) {
	v := output{p.View()}
	lines := v.describe(r)
	if owner, known := aggregate(r); known && p.Log != nil {
		f, err := readOwner(ctx, p.Log, owner)
		if err != nil {
			return nil, err
		}
		lines = append(lines, v.historyLines(f, r.Name)...)
	}
	return append(lines, v.conditions(r.Status.Conditions)...), nil
}

// getEnded reads from the log a remediation whose resource was deleted together with its machine.
func getEnded(ctx context.Context, p *session, at types.NamespacedName, notFound error) (r *v1alpha1.SurgeRemediation, err error) {
	unreached := p.ConnectLog(ctx)
	if unreached == nil {
		if r, err = p.LogSource().Get(ctx, at); err == nil {
			return r, nil
		}
	}
	switch {
	case kit.HasHint(notFound):
		return nil, notFound
	case unreached != nil:
		return nil, fmt.Errorf("%w; remediations that have ended are in the log, which could not be reached: %s shows why", notFound, p.Kit.Hint("", "doctor"))
	default:
		return nil, fmt.Errorf("%w, and none in the log: healthy machines have none; %s shows all", notFound, p.Kit.Hint(at.Namespace, "get", "machines"))
	}
}
