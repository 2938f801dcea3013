package remediation

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/fact"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/show"
	"scute.dev/eventlog"
)

type (
	place = kit.Place[*v1alpha1.SurgeRemediation]
	noun  = kit.Noun[*v1alpha1.SurgeRemediation]
)

// Commands are those about remediations, by their verbs.
func Commands(env *cli.Env) kit.Verbs {
	n := newNoun()
	return kit.Verbs{
		"get": kit.Get(env, n), "describe": kit.Describe(env, n), "watch": kit.Watch(env, n), "logs": kit.Logs(env, n),
		"hold": newCmdHold(env, n), "release": newCmdRelease(env, n), "abort": newCmdAbort(env, n),
	}
}

func newNoun() *noun {
	return &noun{
		Name: "remediation", Plural: "remediations", Short: []string{"rem", "srem"}, A: "a machine", Resource: "surgeremediation.scute.dev",
		InCluster: inCluster, InLog: inLog, Ended: ended,
		Key:    key,
		Phase:  func(r *v1alpha1.SurgeRemediation) string { return string(r.Status.Phase) },
		Log:    aggregate,
		Events: events,
		Table: func(v show.View, list []*v1alpha1.SurgeRemediation, namespaces, wide bool) []string {
			return view{v}.table(list, namespaces, wide)
		},
		Data:       kit.Resources[*v1alpha1.SurgeRemediation]("SurgeRemediation", func() client.ObjectList { return &v1alpha1.SurgeRemediationList{} }),
		Describe:   describe,
		Standing:   func(v show.View, r *v1alpha1.SurgeRemediation) []string { return view{v}.standing(r) },
		News:       func(r *v1alpha1.SurgeRemediation) []kit.News { return []kit.News{{Text: factOf(r)}} },
		Conditions: func(r *v1alpha1.SurgeRemediation) []metav1.Condition { return r.Status.Conditions },
		Over:       over,
		Bad:        func(r *v1alpha1.SurgeRemediation) bool { return !good(r.Status.Phase) },
		Goes:       "the remediation continues without being watched",
		GetLong: `A remediation has the name of its machine.

One that has ended goes with its machine, and so does one whose machine was deleted before its replacement was ready. The log keeps
them: name one, or list those of a log with --log or --nats.`,
		DescribeLong: `It says which rule decided, and on what evidence. Nothing is remediated unless a RepairPolicy selects the cluster.`,
		WatchLong:    `Exit status: 0 the machine was replaced, or is healthy again; 1 it was not; 130 interrupted (the remediation continues).`,
	}
}

func key(r *v1alpha1.SurgeRemediation) types.NamespacedName { return kit.Key(r.Namespace, r.Name) }

// aggregate is that of the machine's owner.
func aggregate(r *v1alpha1.SurgeRemediation) (eventlog.Aggregate, bool) {
	return ownerOf(r.Status.RemediationID)
}

// events of an owner that are about the machine.
func events(r *v1alpha1.SurgeRemediation) func(eventlog.Record) ([]show.Event, error) {
	story, words := newStory(r.Name), fact.New()
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

// ended reads a remediation whose resource has gone with its machine: the log has its end.
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
