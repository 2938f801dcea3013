package remediation

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/domain"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/source"
	"scute.dev/eventlog"
)

type (
	place = kit.Place[*v1alpha1.SurgeRemediation]
	noun  = kit.Noun[*v1alpha1.SurgeRemediation]
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
	resource := kit.Resource[*v1alpha1.SurgeRemediation]{
		Kind: "SurgeRemediation", In: eventlog.KindRemediation,
		New:     func() *v1alpha1.SurgeRemediation { return &v1alpha1.SurgeRemediation{} },
		NewList: func() client.ObjectList { return &v1alpha1.SurgeRemediationList{} },
		Begin:   func(string) source.Fold[*v1alpha1.SurgeRemediation] { return NewFold() },
		Status: func(r *v1alpha1.SurgeRemediation) (phase, id string, conditions []metav1.Condition) {
			return string(r.Status.Phase), r.Status.RemediationID, r.Status.Conditions
		},
	}
	n := resource.Fill(&noun{
		Name: "remediation", Plural: "remediations", Short: []string{"rem", "srem"}, A: "a machine",
		Ended: ended, Log: aggregate, Events: events, Row: row, Describe: describe, Over: over,
		Header: show.Row{
			Cells: []string{"MACHINE", "PHASE", "DECISION", "REPLACEMENT", "ETCD", "AGE"},
			Wide:  []string{"CLUSTER", "OWNER", "POLICY", "TRIES", "MESSAGE"},
		},
		Standing: func(v show.View, r *v1alpha1.SurgeRemediation) []string { return view{v}.standing(r) },
		News:     func(r *v1alpha1.SurgeRemediation) []kit.News { return []kit.News{{Text: factOf(r)}} },
		Bad:      func(r *v1alpha1.SurgeRemediation) bool { return !good(r.Status.Phase) },
		Goes:     "the remediation continues without being watched",
		GetLong: `A remediation has the name of its machine.

One that has ended goes with its machine, and so does one whose machine was deleted before its replacement was ready. The log keeps
them: name one, or list those of a log with --log or --nats.`,
		DescribeLong: `It says which rule decided, and on what evidence. Nothing is remediated unless a RepairPolicy selects the cluster.`,
		WatchLong:    `Exit status: 0 the machine was replaced, or is healthy again; 1 it was not; 130 interrupted (the remediation continues).`,
	})
	inLog := n.InLog
	n.InLog = func(log *connect.Log) *source.Logged[*v1alpha1.SurgeRemediation] {
		l := inLog(log)
		l.May = func(id string, key types.NamespacedName) bool { // search all owners of the namespace: a recreated owner has other machines
			return key.Namespace == "" || strings.HasPrefix(id, key.Namespace+"/")
		}
		return l
	}
	return n
}

func key(r *v1alpha1.SurgeRemediation) types.NamespacedName { return kit.Key(r.Namespace, r.Name) }

// aggregate returns the aggregate of the machine's owner.
func aggregate(r *v1alpha1.SurgeRemediation) (eventlog.Aggregate, bool) {
	return ownerOf(r.Status.RemediationID)
}

// events returns a function that selects the events about the machine from a commit of its owner.
func events(r *v1alpha1.SurgeRemediation) func(eventlog.Record) ([]show.Event, error) {
	story, words := newStory(r.Name), domain.NewWords()
	return func(record eventlog.Record) ([]show.Event, error) {
		before := len(story.Steps)
		err := story.Apply(record)
		return told(words, story.machine, story.Steps[before:]), err
	}
}

func describe(ctx context.Context, p *place, r *v1alpha1.SurgeRemediation) ([]string, error) {
	v := view{p.View()}
	lines := v.describe(r)
	if owner, known := aggregate(r); known && p.Log != nil {
		s, err := tell(ctx, p.Log, owner, r.Name)
		if err != nil {
			return nil, err
		}
		lines = append(lines, v.story(s)...)
	}
	return append(lines, v.conditions(r.Status.Conditions)...), nil
}

// ended reads a remediation from the log after its resource was deleted with its machine.
func ended(ctx context.Context, p *place, at types.NamespacedName, notFound error) (*v1alpha1.SurgeRemediation, error) {
	if err := p.ReachLog(ctx); err != nil {
		if kit.Hinted(notFound) {
			return nil, notFound
		}
		return nil, fmt.Errorf("%w; the log knows those that have ended, and it could not be reached: %s says why", notFound, p.Kit.Hint("", "doctor"))
	}
	r, err := p.Logged().Get(ctx, at)
	if err != nil && kit.Hinted(notFound) {
		return nil, notFound
	}
	if err != nil {
		return nil, fmt.Errorf("%w, and none in the log: healthy machines have none; %s shows all", notFound, p.Kit.Hint(at.Namespace, "get", "machines"))
	}
	return r, nil
}
