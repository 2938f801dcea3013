package remediation

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/view"
)

// The requests of users, which are also the verbs of the commands.
const (
	hold    = "hold"
	release = "release"
	abort   = "abort"
)

// intent is a user's request, which changes the spec of a SurgeRemediation.
type intent struct {
	*kit.Kit
	noun   *noun
	verb   string
	reason string
	length time.Duration // of a hold; 0 means until the remediation is released
	yes    bool          // confirms an abort
	wait   kit.Wait
	seen   *kit.Seen
}

// newCmdIntent returns the command for a request. flags are the flags in the command's example.
func newCmdIntent(env *cli.Env, n *noun, verb, flags, short, long string) (*cobra.Command, *intent) {
	o := &intent{noun: n, verb: verb}
	cmd := &cobra.Command{
		Short: short, Long: short + ".\n\n" + long, Example: kit.Examples(env, "$ "+verb+" remediation prod-cp-x7k2p -n fleet"+flags),
	}
	o.Kit = kit.Command(env, n, cmd, o.run)
	o.wait.AddFlags(cmd.Flags(), 30*time.Second, "for the daemon's answer")
	return cmd, o
}

func newCmdHold(env *cli.Env, n *noun) *cobra.Command {
	cmd, o := newCmdIntent(env, n, hold, " --for 2h --reason 'looking at the disk'", "Keep an unhealthy machine as it is, to examine it",
		"The machine stays marked, and no remediation of it is started until the hold ends or is released. A remediation in\n"+
			"progress continues: abort cancels it.")
	cmd.Flags().DurationVar(&o.length, "for", 0, "How long, for example 2h; if not set, until it is released")
	cli.ReasonVar(cmd.Flags(), &o.reason)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("for") && o.length <= 0 {
			return cli.Usagef("--for is %s: it must be greater than zero", view.Duration(o.length))
		}
		return nil
	}
	return cmd
}

func newCmdRelease(env *cli.Env, n *noun) *cobra.Command {
	cmd, _ := newCmdIntent(env, n, release, "", "Release a hold or an abort, so that scute decides about the machine again",
		"A hold of the RepairPolicy (spec.hold) is not released: it ends without a command.")
	return cmd
}

func newCmdAbort(env *cli.Env, n *noun) *cobra.Command {
	cmd, o := newCmdIntent(env, n, abort, " --yes", "Cancel the remediation of a machine, and start no other",
		"The replicas of the owner are restored and the replacement is deleted; the machine stays, marked. A machine that its owner\n"+
			"is already deleting cannot be kept. The command asks for confirmation; without a terminal, --yes is required.")
	kit.YesVar(cmd.Flags(), &o.yes)
	return cmd
}

// Hold holds a remediation. It fails if the remediation has changed since the user saw it. If
// length is 0, the hold lasts until the remediation is released. Hold does not wait for the daemon.
func Hold(ctx context.Context, k *kit.Kit, seen *kit.Seen, machine, reason string, length time.Duration) error {
	return (&intent{Kit: k, noun: newNoun(), verb: hold, reason: reason, length: length, seen: seen}).write(ctx, machine)
}

// Release releases a remediation. It fails if the remediation has changed since the user saw it. It
// does not wait for the daemon.
func Release(ctx context.Context, k *kit.Kit, seen *kit.Seen, machine string) error {
	return (&intent{Kit: k, noun: newNoun(), verb: release, seen: seen}).write(ctx, machine)
}

// Abort aborts a remediation. It fails if the remediation has changed since the user saw it. It
// does not wait for the daemon. The caller must have asked the user for confirmation.
func Abort(ctx context.Context, k *kit.Kit, seen *kit.Seen, machine string) error {
	return (&intent{Kit: k, noun: newNoun(), verb: abort, yes: true, seen: seen}).write(ctx, machine)
}

func (o *intent) run(ctx context.Context, machine string) error {
	if err := o.wait.Validate(); err != nil {
		return err
	}
	if o.Flags.LogOnly() || o.Flags.Local {
		return cli.Usagef("this command changes a SurgeRemediation in a management cluster: leave out --local, --log and --nats")
	}
	return o.write(ctx, machine)
}

// write patches only the changed fields of the spec. If the user requests it, it then waits for the
// daemon.
func (o *intent) write(ctx context.Context, machine string) error {
	p, err := kit.InCluster(o.Kit, o.noun)
	if err != nil {
		return err
	}
	before, err := p.GetWithHint(ctx, p.Key(machine))
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
	if equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		o.Env.Notef("%s: nothing was changed: its spec has this value already, and it is %s", key(before), before.Status.Phase)
		return nil
	}
	if err := p.Cluster.Client.Patch(ctx, after, o.seen.Patch(before)); err != nil {
		return fmt.Errorf("writing the spec of remediation %s: %w", key(before), p.Cluster.Explain(err))
	}
	if err := o.Env.Linef("%s: %s", key(before), said); err != nil || !o.wait.Wait {
		return err
	}
	return o.awaitAnswer(ctx, p, before, after)
}

// change changes the spec as the user requests. said describes what was done, or is "" if nothing
// had to change. An error means that the request is impossible now.
func (o *intent) change(r *v1alpha1.SurgeRemediation) (said string, err error) {
	switch {
	case o.verb == release:
		r.Spec.Hold, r.Spec.Abort = nil, false
		return "released", nil
	case o.verb == abort && r.Spec.Abort:
		return "", nil
	case finished(r) && r.Status.FinishedAt != nil:
		return "", kit.Refusef("the remediation of %s has ended (%s): there is nothing to %s", key(r), r.Status.Phase, o.verb)
	case o.verb == abort && !o.yes:
		question := fmt.Sprintf("%s is %s\nAbort it?", key(r), cli.Clean(kit.StatusLine(string(r.Status.Phase), r.Status.Message, "", "")))
		if err := o.Confirm("--yes", question, "abort the remediation of "+key(r).String()); err != nil {
			return "", err
		}
	}
	if o.verb == abort {
		r.Spec.Abort = true
		return "abort requested", nil
	}
	if inProgress(r.Status.Phase) {
		o.Env.Notef("A replacement has started (%s), and continues: to cancel it, use %s. The hold takes effect before another one starts.",
			r.Status.Phase, o.Hint(r.Namespace, abort, "remediation", r.Name))
	}
	r.Spec.Hold = &v1alpha1.RemediationHold{Reason: o.reason}
	if o.length == 0 {
		return "held until it is released", nil
	}
	r.Spec.Hold.Until = &metav1.Time{Time: o.Env.Now().Add(o.length).UTC().Truncate(time.Second)}
	return fmt.Sprintf("held for %s, until %s", view.Duration(o.length), cli.Second(r.Spec.Hold.Until.Time)), nil
}

// awaitAnswer waits until the daemon has recorded the request, and prints the resulting phase.
func (o *intent) awaitAnswer(ctx context.Context, p *session, before, asked *v1alpha1.SurgeRemediation) error {
	if before.Status.Phase == v1alpha1.RemediationUnselected {
		o.Env.Notef("It has no effect until a RepairPolicy selects the machine.")
		return nil
	}
	var last *v1alpha1.SurgeRemediation
	err := p.Await(ctx, key(before), o.wait.Timeout, "the request is in the spec of the SurgeRemediation", func(now *v1alpha1.SurgeRemediation) bool {
		last = now
		return o.recorded(asked, now) || !IsOpen(now)
	})
	if err != nil {
		return err
	}
	if err := o.Env.Linef("%s: %s: %s", key(last), last.Status.Phase, last.Status.Message); err != nil {
		return err
	}
	next := "To let scute decide again: " + o.Hint(last.Namespace, release, "remediation", last.Name)
	if o.verb == release {
		next = "To follow it: " + o.Hint(last.Namespace, "watch", "remediation", last.Name)
	}
	o.Env.Notef("%s", next)
	return nil
}

// recorded reports whether the status shows the request. For a release, the status must be as new
// as the spec, because an older status may not show the hold yet.
func (o *intent) recorded(asked, now *v1alpha1.SurgeRemediation) bool {
	switch want, have := asked.Spec.Hold, now.Status.Hold; o.verb {
	case hold:
		return want != nil && have != nil && want.Reason == have.Reason && want.Until.Equal(have.Until)
	case release:
		return have == nil && !now.Status.Aborted && now.Status.ObservedGeneration >= now.Generation
	default:
		return now.Status.Aborted
	}
}
