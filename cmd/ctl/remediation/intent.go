package remediation

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/view"
)

// intent is a user's change to the spec of a SurgeRemediation.
type intent struct {
	*kit.Kit
	noun *noun
	Name string
	Wait kit.Wait
	seen *kit.Seen

	// change sets the spec. It returns the request in words, "" if nothing needs changing. An error refuses the request.
	change func(r *v1alpha1.SurgeRemediation) (said string, err error)
	// recorded reports whether the log has recorded the request.
	recorded func(asked, now *v1alpha1.SurgeRemediation) bool
	// next returns a hint about what to do afterwards.
	next func(r *v1alpha1.SurgeRemediation) string
}

func (o *intent) command(env *cli.Env, short, long string, examples ...string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "remediation MACHINE", Aliases: o.noun.Aliases(),
		Short: short, Long: short + ".\n\n" + long, Example: kit.Examples(env, examples...), Args: kit.OneName(o.noun.WithArticle),
		RunE: kit.WithName(&o.Name, o.run),
	}
	o.Kit = kit.New(env, cmd, "machines")
	cmd.ValidArgsFunction = kit.Complete(o.Kit, o.noun, 1)
	o.Wait.AddFlags(cmd.Flags(), 30*time.Second, "for the daemon's answer")
	return cmd
}

func (o *intent) run(ctx context.Context) error {
	if err := o.Wait.Validate(); err != nil {
		return err
	}
	if o.Flags.LogOnly() || o.Flags.Local {
		return cli.Usagef("this command changes a SurgeRemediation in a management cluster: leave out --local, --log and --nats")
	}
	return o.write(ctx)
}

// write changes the spec in the management cluster, and waits for the daemon if asked to.
func (o *intent) write(ctx context.Context) error {
	p, err := kit.InCluster(o.Kit, o.noun)
	if err != nil {
		return err
	}
	before, err := p.GetWithHint(ctx, p.Key(o.Name))
	if kit.HasHint(err) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: only a machine that is marked unhealthy has one, and a policy in dry run marks none; %s shows them", err, o.Hint(p.Cluster.Namespace, "get", "machines"))
	}
	if before.DeletionTimestamp != nil {
		return kit.Refusef("the SurgeRemediation of %s is being deleted: nothing was changed", key(before))
	}
	if err := o.seen.Check(before, before.Status.RemediationID); err != nil {
		return err
	}
	after := before.DeepCopy()
	said, err := o.change(after)
	if err != nil {
		return err
	}
	if said == "" {
		return nil // nothing needs changing, and change has printed this
	}
	if err := o.patch(ctx, p.Cluster, before, after); err != nil {
		return err
	}
	if err := o.Env.Linef("%s: %s", key(before), said); err != nil {
		return err
	}
	if !o.Wait.Wait {
		return nil
	}
	return o.awaitAnswer(ctx, p, before, after)
}

// patch writes only the changes to the spec, because the status changes all the time.
func (o *intent) patch(ctx context.Context, cluster *connect.Cluster, before, after *v1alpha1.SurgeRemediation) error {
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	if err := cluster.Client.Patch(ctx, after, o.seen.Patch(before)); err != nil {
		return fmt.Errorf("writing the spec of remediation %s/%s: %w", before.Namespace, before.Name, cluster.Explain(err))
	}
	return nil
}

// awaitAnswer waits until the log has recorded the request, and prints the resulting phase and message.
func (o *intent) awaitAnswer(ctx context.Context, p *session, before, asked *v1alpha1.SurgeRemediation) error {
	if before.Status.Phase == v1alpha1.RemediationUnselected {
		o.Env.Notef("It has no effect until a RepairPolicy selects the machine.")
		return nil
	}
	var last *v1alpha1.SurgeRemediation
	err := p.Await(ctx, key(before), o.Wait.Timeout, "the request is in the spec of the SurgeRemediation", func(now *v1alpha1.SurgeRemediation) bool {
		last = now
		return o.recorded(asked, now) || !IsOpen(now)
	})
	if err != nil {
		return err
	}
	if err := o.Env.Linef("%s: %s", key(last), string(last.Status.Phase)+": "+last.Status.Message); err != nil {
		return err
	}
	if o.next != nil {
		o.Env.Notef("%s", o.next(last))
	}
	return nil
}

// commandLine returns a command about the same machine, as the user would type it.
func (o *intent) commandLine(verb string, r *v1alpha1.SurgeRemediation) string {
	return o.Hint(r.Namespace, verb, "remediation", r.Name)
}

// maxReason is the limit of spec.hold.reason in the schema.
const maxReason = 512

func newCmdHold(env *cli.Env, n *noun) *cobra.Command {
	var length time.Duration
	var reason string
	o := &intent{noun: n}
	cmd := o.command(env, "Keep an unhealthy machine as it is, to examine it",
		"The machine stays marked, and no remediation of it is started until the hold ends or is released. A remediation in\nprogress continues: abort cancels it.",
		"$ hold remediation prod-cp-x7k2p -n fleet --for 2h --reason 'looking at the disk'")
	cmd.Flags().DurationVar(&length, "for", 0, "How long, for example 2h; if not set, until it is released")
	cli.ReasonVar(cmd.Flags(), &reason)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case cmd.Flags().Changed("for") && length <= 0:
			return cli.Usagef("--for is %s: it must be greater than zero", view.Duration(length))
		case len([]rune(reason)) > maxReason:
			return cli.Usagef("--reason has %d characters: it must have %d or fewer", len([]rune(reason)), maxReason)
		}
		return nil
	}
	o.change = func(r *v1alpha1.SurgeRemediation) (string, error) { return o.hold(r, reason, length) }
	o.recorded = holdMatches
	o.next = func(r *v1alpha1.SurgeRemediation) string {
		goOn := "To let it continue: " + o.commandLine("release", r)
		if r.Status.Phase != v1alpha1.RemediationHeld {
			return "The hold is recorded, and takes effect when the remediation in progress has ended. " + goOn
		}
		return goOn
	}
	return cmd
}

// hold sets a hold for a duration, or until it is released if length is 0.
func (o *intent) hold(r *v1alpha1.SurgeRemediation, reason string, length time.Duration) (string, error) {
	if finished(r) && r.Status.FinishedAt != nil {
		return "", kit.Refusef("the remediation of %s/%s has ended (%s): there is nothing to hold", r.Namespace, r.Name, r.Status.Phase)
	}
	if InProgress(r.Status.Phase) {
		o.Env.Notef("A replacement has started (%s), and continues: to cancel it, use %s. The hold takes effect before another one starts.", r.Status.Phase, o.commandLine("abort", r))
	}
	before := r.Spec.Hold
	r.Spec.Hold = &v1alpha1.RemediationHold{Reason: reason}
	if length == 0 {
		if before != nil && *before == *r.Spec.Hold {
			o.Env.Notef("%s/%s is already held until it is released: nothing was changed.", r.Namespace, r.Name)
			return "", nil
		}
		return "held until it is released", nil
	}
	until := metav1.NewTime(o.Env.Now().Add(length).UTC().Truncate(time.Second))
	r.Spec.Hold.Until = &until
	return fmt.Sprintf("held for %s, until %s", view.Duration(length), cli.Second(until.Time)), nil
}

// holdMatches reports whether the status has the requested hold. Times in both have whole seconds.
func holdMatches(asked, now *v1alpha1.SurgeRemediation) bool {
	want, have := asked.Spec.Hold, now.Status.Hold
	return want != nil && have != nil && want.Reason == have.Reason && want.Until.Equal(have.Until)
}

func newCmdRelease(env *cli.Env, n *noun) *cobra.Command {
	o := &intent{noun: n}
	cmd := o.command(env, "Release a hold or an abort, so that scute decides about the machine again",
		"A hold of the RepairPolicy (spec.hold) is not released: it ends without a command.",
		"$ release remediation prod-cp-x7k2p -n fleet")
	o.change = o.release
	o.recorded = released
	o.next = func(r *v1alpha1.SurgeRemediation) string {
		return "To follow it: " + o.commandLine("watch", r)
	}
	return cmd
}

func (o *intent) release(r *v1alpha1.SurgeRemediation) (string, error) {
	if r.Spec.Hold == nil && !r.Spec.Abort {
		o.Env.Notef("%s/%s is neither held nor aborted: nothing was changed.", r.Namespace, r.Name)
		return "", nil
	}
	r.Spec.Hold, r.Spec.Abort = nil, false
	return "released", nil
}

// released reports whether the status shows neither hold nor abort. A status of an earlier generation may predate the release.
func released(_, now *v1alpha1.SurgeRemediation) bool {
	return now.Status.Hold == nil && !now.Status.Aborted && now.Status.ObservedGeneration >= now.Generation
}

func aborted(_, now *v1alpha1.SurgeRemediation) bool { return now.Status.Aborted }

func newCmdAbort(env *cli.Env, n *noun) *cobra.Command {
	var yes bool
	o := &intent{noun: n}
	cmd := o.command(env, "Cancel the remediation of a machine, and start no other",
		"The replicas of the owner are restored and the replacement is deleted; the machine stays, marked. A machine that its owner\nis already deleting cannot be kept. The command asks for confirmation; without a terminal, --yes is required.",
		"$ abort remediation prod-cp-x7k2p -n fleet --yes")
	kit.YesVar(cmd.Flags(), &yes)
	o.change = func(r *v1alpha1.SurgeRemediation) (string, error) { return o.abort(r, yes) }
	o.recorded = aborted
	o.next = func(r *v1alpha1.SurgeRemediation) string {
		return "To follow it: " + o.commandLine("watch", r) + "; to let scute decide again: " + o.commandLine("release", r)
	}
	return cmd
}

// abort requests an abort. It asks for confirmation first unless yes is set.
func (o *intent) abort(r *v1alpha1.SurgeRemediation, yes bool) (string, error) {
	switch {
	case r.Spec.Abort:
		o.Env.Notef("%s/%s is already aborted: %s", r.Namespace, r.Name, r.Status.Message)
		return "", nil
	case finished(r) && r.Status.FinishedAt != nil:
		return "", kit.Refusef("the remediation of %s/%s has ended (%s): there is nothing to abort", r.Namespace, r.Name, r.Status.Phase)
	case !yes:
		if err := o.confirm(r); err != nil {
			return "", err
		}
	}
	r.Spec.Abort = true
	return "abort requested", nil
}

// confirm shows the state of the remediation and asks for confirmation.
func (o *intent) confirm(r *v1alpha1.SurgeRemediation) error {
	state := string(r.Status.Phase)
	if r.Status.Message != "" {
		state += ": " + r.Status.Message
	}
	return o.Confirm(fmt.Sprintf("%s is %s\nAbort it?", key(r), cli.Clean(state)), "abort the remediation of "+key(r).String())
}
