package remediation

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/fact"
	"scute.dev/cmd/ctl/remediations"
	"scute.dev/cmd/ctl/show"
	"scute.dev/eventlog"
)

type describeOptions struct {
	*Deps
	Name     string
	Timeline bool
}

func newCmdDescribe(d *Deps) *cobra.Command {
	o := &describeOptions{Deps: d}
	cmd := &cobra.Command{
		Use:   "describe MACHINE",
		Short: "Show what was decided about a machine and why, where it stands, and what happened",
		Args:  oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: d.complete,
	}
	cmd.Flags().BoolVar(&o.Timeline, "timeline", true, "Show what the log knows, if it can be reached: the rule that decided, what was seen, the events")
	return cmd
}

func (o *describeOptions) run(ctx context.Context) error {
	at, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer at.Close()
	r, err := o.find(ctx, at, o.key(at, o.Name))
	if err != nil {
		return err
	}
	v := o.view()
	if err := o.print(v.DescribeRemediation(r)); err != nil {
		return err
	}
	if !o.Timeline {
		return o.print(v.RemediationConditions(r.Status.Conditions))
	}
	if err := o.reachLog(ctx, at); err != nil {
		if err := o.print(v.RemediationConditions(r.Status.Conditions)); err != nil {
			return err
		}
		o.Env.Notef("\nThe rule, what was seen and the timeline are left out, because the log could not be reached: %v", err)
		return nil
	}
	return o.story(ctx, at, r)
}

// story prints what only the log knows.
func (o *describeOptions) story(ctx context.Context, at *opened, r *v1alpha1.SurgeRemediation) error {
	v := o.view()
	owner, known := remediations.Owner(r.Status.RemediationID)
	if !known {
		id, err := o.logged(at.log).ID(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
		if err != nil { // the log has nothing to add
			return o.print(v.RemediationConditions(r.Status.Conditions))
		}
		owner = eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: id}
	}
	s, err := remediations.Tell(ctx, at.log, owner, r.Name)
	if err != nil {
		return err
	}
	lines := append(v.RemediationStory(s), v.RemediationConditions(r.Status.Conditions)...)
	events := show.Steps(fact.New(), s)
	left := 0
	if len(events) > 0 {
		var timeline []string
		timeline, left = v.Timeline(events)
		lines = append(append(lines, "", "Timeline, from the log at "+at.log.Where+":"), timeline...)
	}
	if err := o.print(lines); err != nil {
		return err
	}
	if left > 0 {
		o.Env.Notef("%d earlier rows are left out.", left)
	}
	if len(events) > 0 {
		o.Env.Notef("%s", fmt.Sprintf("`%s log tail --aggregate %s -n -1` shows every event of its owner.", o.Env.Name, owner))
	}
	return nil
}
