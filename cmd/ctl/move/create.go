package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/mover"
	"scute.dev/view"
)

type createOptions struct {
	*kit.Kit
	noun         *noun
	Name         string
	Clusters     []string
	All          bool
	ToKubeconfig string
	ToContext    string
	ToSecret     string
	// AllowInsecure accepts a kubeconfig that uses http or does not verify the server's certificate.
	AllowInsecure bool
	DryRun        bool
	NoRollback    bool
	AcceptLoss    []string
	Acknowledge   time.Duration
	Wait          kit.Wait
	Follow        bool
}

func newCmdCreate(env *cli.Env, n *noun) *cobra.Command {
	o := &createOptions{noun: n}
	cmd := &cobra.Command{
		Use: "move NAME (--cluster CLUSTER ... | --all) (--to-kubeconfig FILE | --to-secret NAME[/KEY])", Aliases: n.Aliases(),
		Short: "Move clusters of a namespace to another management cluster",
		Long: `Move clusters of a namespace to another management cluster.

The daemon first runs all checks on both management clusters and changes nothing; this command waits for the result and
shows every finding. Then the move continues without this command.`,
		Example: kit.Examples(env,
			"# What would happen?",
			"$ create move prod-check --cluster prod --to-kubeconfig target.kubeconfig --dry-run",
			"# Move it, and follow the move to its end.",
			"$ create move prod --cluster prod --to-kubeconfig target.kubeconfig --follow",
			"# All clusters of a namespace, to the cluster whose kubeconfig is in a Secret there.",
			"$ create move all -n fleet --all --to-secret target/kubeconfig"),
		Args:              kit.OneName("the new move"),
		RunE:              kit.WithName(&o.Name, o.run),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.Kit = kit.New(env, cmd, n.Plural)
	f := cmd.Flags()
	f.StringSliceVarP(&o.Clusters, "cluster", "c", nil, "Cluster to move; may be repeated")
	f.BoolVar(&o.All, "all", false, "Move all clusters of the namespace, and other movable objects")
	f.StringVar(&o.ToKubeconfig, "to-kubeconfig", "", "Kubeconfig file of the target; it is stored in the Secret NAME-target")
	f.StringVar(&o.ToContext, "to-context", "", "Context of that file; its current one if empty")
	f.BoolVar(&o.AllowInsecure, "allow-insecure", false, "Accept a kubeconfig with http or without certificate verification, although the clusters' private keys are sent there")
	f.StringVar(&o.ToSecret, "to-secret", "", "Secret with the target's kubeconfig, as NAME or NAME/KEY; the default key is \"value\"")
	f.BoolVar(&o.DryRun, "dry-run", false, "Check both management clusters and create the plan, but change nothing")
	f.BoolVar(&o.NoRollback, "no-rollback", false, "Leave a failed move as it is, paused, for an operator")
	f.StringSliceVar(&o.AcceptLoss, "accept-loss", nil, "Kinds, as Kind.group, of objects that the move may destroy because they cannot be moved; may be repeated")
	f.DurationVar(&o.Acknowledge, "acknowledge", 0, "How long each controller may take to acknowledge the pause; the default is 5m")
	f.BoolVarP(&o.Follow, "follow", "f", false, "Follow the move to its end, like watch")
	o.Wait.AddFlags(f, 5*time.Minute, "for the daemon's answer")
	return cmd
}

func (o *createOptions) validate() error {
	switch {
	case o.Flags.LogOnly() || o.Flags.Local:
		return cli.Usagef("a move is created in a management cluster: leave out --local, --log and --nats")
	case o.All == (len(o.Clusters) > 0):
		return cli.Usagef("name the clusters to move: --cluster, once or more, or --all")
	case (o.ToKubeconfig == "") == (o.ToSecret == ""):
		return cli.Usagef("name the target: either --to-kubeconfig FILE or --to-secret NAME[/KEY]")
	case o.ToContext != "" && o.ToKubeconfig == "":
		return cli.Usagef("--to-context needs --to-kubeconfig")
	case o.Acknowledge < 0:
		return cli.Usagef("--acknowledge is %s: it must be greater than zero", view.Duration(o.Acknowledge))
	case o.Follow && !o.Wait.Wait:
		return cli.Usagef("--follow and --wait=false cannot be used together")
	}
	if err := errors.Join(o.Wait.Validate(), o.Flags.Check()); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for _, c := range o.Clusters {
		if err := kit.CheckName("--cluster", c); err != nil {
			return err
		}
		if seen[c] {
			return cli.Usagef("--cluster %s is given twice", c)
		}
		seen[c] = true
	}
	name, key := o.secret()
	if err := kit.CheckName("the Secret", name); err != nil {
		return err
	}
	for _, problem := range validation.IsConfigMapKey(key) {
		return cli.Usagef("--to-secret: %q is not a valid key of a Secret: %s", key, problem)
	}
	return nil
}

func (o *createOptions) secret() (name, key string) {
	if o.ToKubeconfig != "" {
		return o.Name + "-target", secretKey
	}
	name, key, given := strings.Cut(o.ToSecret, "/")
	if !given {
		key = secretKey
	}
	return name, key
}

func (o *createOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	var kubeconfig []byte
	if o.ToKubeconfig != "" {
		var err error
		if kubeconfig, err = targetKubeconfig(o.ToKubeconfig, o.ToContext); err != nil {
			return cli.Usagef("%w", err)
		}
	}
	p, err := kit.InCluster(o.Kit, o.noun)
	if err != nil {
		return err
	}
	m := o.resource(p.Cluster.Namespace)
	if err := checkAbsent(ctx, p, m); err != nil {
		return err
	}
	if err := create(ctx, p, m, kubeconfig); err != nil {
		return err
	}
	if kubeconfig != nil {
		o.Env.Notef("The target's kubeconfig is in Secret %s/%s; it is deleted with the Move.", m.Namespace, m.Spec.Target.KubeconfigSecretRef.Name)
	}
	_ = o.Env.Linef("move %s created", key(m))
	switch {
	case o.Follow:
		return p.Follow(ctx, key(m), &cli.Format{})
	case o.Wait.Wait:
		return o.awaitPreflight(ctx, p, m)
	default:
		return nil
	}
}

func (o *createOptions) resource(namespace string) *v1alpha1.Move {
	secret, key := o.secret()
	rollback := !o.NoRollback
	m := &v1alpha1.Move{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.Name},
		Spec: v1alpha1.MoveSpec{
			Target:            v1alpha1.MoveTarget{KubeconfigSecretRef: v1alpha1.SecretKeyRef{Name: secret, Key: key}, AllowInsecure: o.AllowInsecure},
			Selection:         v1alpha1.MoveSelection{Clusters: o.Clusters, All: o.All},
			DryRun:            o.DryRun,
			AcceptLoss:        o.AcceptLoss,
			RollbackOnFailure: &rollback,
		},
	}
	if o.Acknowledge > 0 {
		m.Spec.Timeouts.Acknowledge = &v1alpha1.Duration{Duration: o.Acknowledge}
	}
	return m
}

// awaitPreflight waits until the preflight has passed or failed, or until a dry run is over.
func (o *createOptions) awaitPreflight(ctx context.Context, p *session, m *v1alpha1.Move) error {
	look := p.Hint("watch", key(m))
	recorded := "the move is created and continues: follow it with " + look
	var last *v1alpha1.Move
	err := p.Await(ctx, key(m), o.Wait.Timeout, recorded, func(now *v1alpha1.Move) bool {
		last = now
		switch now.Status.Phase {
		case "", mover.PhasePending, mover.PhasePreflight:
			return false
		default:
			return !o.DryRun || finished(now)
		}
	})
	if err != nil {
		return err
	}
	return o.printPreflight(last, look)
}

func (o *createOptions) printPreflight(m *v1alpha1.Move, look string) error {
	if m.Status.Phase == mover.PhaseFailed && m.Status.FinishedAt != nil {
		if err := cmp.Or(o.Env.Linef("move %s refused: nothing was changed", key(m)), o.Print(o.View().Tables(tables(m)))); err != nil {
			return err
		}
		return errors.New("fix the findings, then create a Move with another name, or delete this one first")
	}
	if m.Status.Phase == mover.PhaseRolledBack || m.Status.Phase == mover.PhaseRollingBack || m.Status.Phase == mover.PhaseFailed {
		return fmt.Errorf("move %s: %s", key(m), m.Status.Message)
	}
	said := "preflight passed, the move has started; follow it with " + look
	if m.Status.Phase == mover.PhaseSucceeded {
		said = m.Status.Message
	}
	return cmp.Or(o.Env.Linef("move %s: %s", key(m), said), o.Print(o.View().Tables(tables(m))))
}
