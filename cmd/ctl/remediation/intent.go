package remediation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/remediations"
	"scute.dev/cmd/ctl/term"
)

// intent is a change of what an operator wants of a machine.
type intent struct {
	*Deps
	Name    string
	Wait    bool
	Timeout time.Duration

	// change sets the spec, and says in words what is asked for; an error refuses.
	change func(r *v1alpha1.SurgeRemediation) (said string, err error)
	// heard says that the log has recorded what the spec asked for.
	heard func(asked, now *v1alpha1.SurgeRemediation) bool
	// next is what to do after it.
	next func(r *v1alpha1.SurgeRemediation) string
}

func (o *intent) command(use, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " MACHINE", Short: short, Long: short + ".\n\n" + long, Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: o.complete,
	}
	cmd.Flags().BoolVar(&o.Wait, "wait", true, "Wait for the daemon's answer")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 30*time.Second, "How long to wait for it")
	return cmd
}

func (o *intent) run(ctx context.Context) error {
	switch {
	case o.Timeout <= 0:
		return cli.Usagef("--timeout is %s: it must be more than nothing", o.Timeout)
	case o.Flags.LogAlone():
		return cli.Usagef("what an operator wants is written into the SurgeRemediation, in a management cluster: --log and --nats do not lead to one")
	}
	if err := o.Flags.Validate(); err != nil {
		return err
	}
	cluster, err := o.Flags.Cluster()
	if err != nil {
		return err
	}
	at := o.inCluster(cluster)
	before, err := at.Get(ctx, o.key(at, o.Name))
	if err != nil {
		return fmt.Errorf("%w: only a machine that is marked has one; `%s machines` shows them", err, o.Env.Name)
	}
	name := before.Namespace + "/" + before.Name
	if before.DeletionTimestamp != nil {
		return fmt.Errorf("the SurgeRemediation of %s is being deleted: nothing was changed", name)
	}
	after := before.DeepCopy()
	said, err := o.change(after)
	if err != nil {
		return err
	}
	if said == "" {
		return nil // there is nothing to change, and it has been said
	}
	if err := o.patch(ctx, at.cluster, before, after); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(o.Env.Out, "%s: %s\n", name, said); err != nil {
		return err
	}
	if !o.Wait {
		return nil
	}
	return o.answer(ctx, at, before, after)
}

// patch writes what has changed of the spec, and nothing else: the status changes all the time.
func (o *intent) patch(ctx context.Context, cluster *reach.Cluster, before, after *v1alpha1.SurgeRemediation) error {
	ctx, cancel := context.WithTimeout(ctx, reach.CallTimeout)
	defer cancel()
	if err := cluster.Client.Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the spec of remediation %s/%s: %w", before.Namespace, before.Name, cluster.Explain(err))
	}
	return nil
}

// answer waits until the log has recorded what was asked for, and tells what the daemon says.
func (o *intent) answer(ctx context.Context, at *opened, before, asked *v1alpha1.SurgeRemediation) error {
	if before.Status.Phase == v1alpha1.RemediationUnselected {
		o.Env.Notef("It has no effect as long as no RepairPolicy selects the machine.")
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var last *v1alpha1.SurgeRemediation
	err := at.Watch(waiting, client.ObjectKeyFromObject(before), func(now *v1alpha1.SurgeRemediation) bool {
		last = now
		return o.heard(asked, now) || !remediations.Open(now)
	})
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(errors.New("interrupted: what was asked for stands"))
	case waiting.Err() != nil:
		return fmt.Errorf("no daemon has recorded it within %s; it stands: `%s doctor` says whether one runs", o.Timeout, o.Env.Name)
	case err != nil:
		return err
	}
	if _, err := fmt.Fprintf(o.Env.Out, "%s/%s: %s\n", last.Namespace, last.Name, term.Clean(string(last.Status.Phase)+": "+last.Status.Message)); err != nil {
		return err
	}
	if o.next != nil {
		o.Env.Notef("%s", o.next(last))
	}
	return nil
}

// line is a command about the same machine, as the user would type it. The namespace is not known of a log alone, where the
// name was looked for in all.
func (d *Deps) line(verb, namespace, machine string) string {
	line := d.Env.Name + " remediation " + verb + " " + machine
	if namespace != "" {
		line += " -n " + namespace
	}
	return "`" + line + "`"
}

// maxReason is the schema's limit of spec.hold.reason.
const maxReason = 512

func newCmdHold(d *Deps) *cobra.Command {
	var length time.Duration
	var reason string
	o := &intent{Deps: d}
	cmd := o.command("hold", "Keep an unhealthy machine as it is, for a closer look",
		"The machine stays marked, and nothing is begun for it until the hold is over or taken off. What is under way already goes\non: abort takes that back.")
	cmd.Flags().DurationVar(&length, "for", 0, "How long, for example 2h; until it is released if not given")
	cli.ReasonVar(cmd.Flags(), &reason)
	cmd.Example = "  " + d.Env.Name + " remediation hold prod-cp-x7k2p --for 2h --reason 'looking at the disk'"
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case cmd.Flags().Changed("for") && length <= 0:
			return cli.Usagef("--for is %s: it must be more than nothing", length)
		case len([]rune(reason)) > maxReason:
			return cli.Usagef("--reason has %d characters: it must have %d or fewer", len([]rune(reason)), maxReason)
		}
		return nil
	}
	o.change = func(r *v1alpha1.SurgeRemediation) (string, error) {
		if remediations.Over(r) && r.Status.FinishedAt != nil {
			return "", fmt.Errorf("the remediation of %s/%s is over (%s): there is nothing to hold", r.Namespace, r.Name, r.Status.Phase)
		}
		if remediations.UnderWay(r.Status.Phase) {
			o.Env.Notef("A replacement is under way (%s), and goes on: to take it back, use %s. The hold counts before another is begun.", r.Status.Phase, d.line("abort", r.Namespace, r.Name))
		}
		before := r.Spec.Hold
		r.Spec.Hold = &v1alpha1.RemediationHold{Reason: reason}
		if length == 0 {
			if before != nil && *before == *r.Spec.Hold {
				o.Env.Notef("%s/%s is held until it is released already: nothing was changed.", r.Namespace, r.Name)
				return "", nil
			}
			return "held until it is released", nil
		}
		until := metav1.NewTime(d.Env.Now().Add(length).UTC().Truncate(time.Second))
		r.Spec.Hold.Until = &until
		return fmt.Sprintf("held for %s, until %s", length, term.Second(until.Time)), nil
	}
	o.heard = heldAsAsked
	o.next = func(r *v1alpha1.SurgeRemediation) string {
		goOn := "To have it go on: " + d.line("release", r.Namespace, r.Name)
		if r.Status.Phase != v1alpha1.RemediationHeld {
			return "The hold is recorded, and counts as soon as what comes first is over. " + goOn
		}
		return goOn
	}
	return cmd
}

// heldAsAsked: times of the API have whole seconds.
func heldAsAsked(asked, now *v1alpha1.SurgeRemediation) bool {
	want, have := asked.Spec.Hold, now.Status.Hold
	return want != nil && have != nil && want.Reason == have.Reason && want.Until.Equal(have.Until)
}

func newCmdRelease(d *Deps) *cobra.Command {
	o := &intent{Deps: d}
	cmd := o.command("release", "Take a hold off, and an abort: the machine is decided about again",
		"A hold of the RepairPolicy's own (spec.hold) is not taken off: it ends by itself.")
	o.change = func(r *v1alpha1.SurgeRemediation) (string, error) {
		if r.Spec.Hold == nil && !r.Spec.Abort {
			o.Env.Notef("%s/%s is neither held nor aborted: nothing was changed.", r.Namespace, r.Name)
			return "", nil
		}
		r.Spec.Hold, r.Spec.Abort = nil, false
		return "released", nil
	}
	o.heard = released
	o.next = func(r *v1alpha1.SurgeRemediation) string {
		return "To follow it: " + d.line("watch", r.Namespace, r.Name)
	}
	return cmd
}

// released: a status of before the release still tells of the hold, or is of another generation.
func released(_, now *v1alpha1.SurgeRemediation) bool {
	return now.Status.Hold == nil && !now.Status.Aborted && now.Status.ObservedGeneration >= now.Generation
}

func aborted(_, now *v1alpha1.SurgeRemediation) bool { return now.Status.Aborted }

func newCmdAbort(d *Deps) *cobra.Command {
	var yes bool
	o := &intent{Deps: d}
	cmd := o.command("abort", "Take back what is under way for a machine, and begin nothing more for it",
		"The owner gets its replicas back, and the replacement goes; the machine stays, marked. A machine whose owner is deleting\nit already cannot be kept. It asks first; where nobody can be asked, --yes must be given.")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "Do not ask")
	o.change = func(r *v1alpha1.SurgeRemediation) (string, error) {
		switch {
		case r.Spec.Abort:
			o.Env.Notef("%s/%s is aborted already: %s", r.Namespace, r.Name, r.Status.Message)
			return "", nil
		case remediations.Over(r) && r.Status.FinishedAt != nil:
			return "", fmt.Errorf("the remediation of %s/%s is over (%s): there is nothing to take back", r.Namespace, r.Name, r.Status.Phase)
		case !yes:
			if err := o.confirm(r); err != nil {
				return "", err
			}
		}
		r.Spec.Abort = true
		return "abort asked for", nil
	}
	o.heard = aborted
	o.next = func(r *v1alpha1.SurgeRemediation) string {
		return "To follow it: " + d.line("watch", r.Namespace, r.Name) + "; to have it decided again: " + d.line("release", r.Namespace, r.Name)
	}
	return cmd
}

// confirm asks on a terminal; elsewhere --yes must be given.
func (o *intent) confirm(r *v1alpha1.SurgeRemediation) error {
	if _, _, terminal := o.Env.Size(o.Env.In); !terminal {
		return cli.Usagef("nothing was changed: add --yes to abort the remediation of %s/%s", r.Namespace, r.Name)
	}
	standing := string(r.Status.Phase)
	if r.Status.Message != "" {
		standing += ": " + r.Status.Message
	}
	fmt.Fprintf(o.Env.Err, "%s/%s is %s\nAbort it? [y/N] ", r.Namespace, r.Name, term.Clean(standing))
	answer, err := bufio.NewReader(o.Env.In).ReadString('\n')
	if err != nil || !strings.EqualFold(strings.TrimSpace(answer), "y") {
		return errors.New("nothing was changed")
	}
	return nil
}
