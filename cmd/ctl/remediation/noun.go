package remediation

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/fact"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/remediations"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/source"
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
		InCluster: remediations.InCluster, InLog: remediations.InLog, Ended: ended,
		Key:    key,
		Phase:  func(r *v1alpha1.SurgeRemediation) string { return string(r.Status.Phase) },
		Log:    aggregate,
		Events: events,
		Table:  show.View.RemediationTable, Data: data, Describe: describe,
		Standing: show.View.RemediationStanding,
		News:     func(r *v1alpha1.SurgeRemediation) []kit.News { return []kit.News{{Text: show.RemediationFact(r)}} },
		Over:     remediations.Over,
		Bad:      func(r *v1alpha1.SurgeRemediation) bool { return !remediations.Good(r.Status.Phase) },
		Goes:     "the remediation continues without being watched",
		GetLong: `A remediation has the name of its machine.

One that has ended goes with its machine; the log keeps it: name it, or list those of a log with --log or --nats.`,
		DescribeLong: `It says which rule decided, and on what evidence. Nothing is remediated unless a RepairPolicy selects the cluster.`,
		WatchLong:    `Exit status: 0 the machine was replaced, or is healthy again; 1 it was not; 130 interrupted (the remediation continues).`,
	}
}

func key(r *v1alpha1.SurgeRemediation) types.NamespacedName { return kit.Key(r.Namespace, r.Name) }

func data(list []*v1alpha1.SurgeRemediation, one bool) any {
	all := &v1alpha1.SurgeRemediationList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "SurgeRemediationList"}}
	for _, r := range list {
		r.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("SurgeRemediation"))
		if one {
			return r
		}
		all.Items = append(all.Items, *r)
	}
	return all
}

// aggregate is that of the machine's owner.
func aggregate(r *v1alpha1.SurgeRemediation) (eventlog.Aggregate, bool) {
	return remediations.Owner(r.Status.RemediationID)
}

// events of an owner that are about the machine.
func events(r *v1alpha1.SurgeRemediation) func(eventlog.Record) ([]show.Event, error) {
	story, words := remediations.NewStory(r.Name), fact.New()
	return func(record eventlog.Record) ([]show.Event, error) {
		before := len(story.Steps)
		err := story.Apply(record)
		return show.Steps(words, story.Steps[before:]), err
	}
}

func describe(ctx context.Context, p *place, r *v1alpha1.SurgeRemediation) ([]string, error) {
	v := p.View()
	lines := v.DescribeRemediation(r)
	if owner, known := aggregate(r); known && p.Log != nil {
		s, err := remediations.Tell(ctx, p.Log, owner, r.Name)
		if err != nil {
			return nil, err
		}
		lines = append(lines, v.RemediationStory(s)...)
	}
	return append(lines, v.RemediationConditions(r.Status.Conditions)...), nil
}

// lastEvents is how long the end of a remediation whose resource is gone is waited for.
const lastEvents = time.Minute

// ended reads a remediation whose resource has gone with its machine: the log has its end.
func ended(ctx context.Context, p *place, at types.NamespacedName, notFound error) (*v1alpha1.SurgeRemediation, error) {
	if err := p.ReachLog(ctx); err != nil {
		return nil, fmt.Errorf("%w; the log knows those that have ended, and it could not be reached: %s says why", notFound, p.Kit.Hint("", "doctor"))
	}
	r, err := p.Logged().Get(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("%w, and none in the log: healthy machines have none; %s shows all", notFound, p.Kit.Hint(at.Namespace, "get", "machines"))
	}
	if remediations.Over(r) || p.Log.Static || !errors.Is(notFound, source.ErrGone) {
		return r, nil
	}
	// The last events come a moment after the machine has gone.
	waiting, cancel := context.WithTimeout(ctx, lastEvents)
	defer cancel()
	err = p.Logged().Watch(waiting, at, func(now *v1alpha1.SurgeRemediation) bool {
		r = now
		return remediations.Over(now)
	})
	switch {
	case err != nil && waiting.Err() == nil:
		return nil, err
	case !remediations.Over(r):
		return nil, fmt.Errorf("the SurgeRemediation of %s is gone, and in the log it is %s: %s", at, r.Status.Phase, r.Status.Message)
	}
	return r, nil
}
