package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/moves"
	"scute.dev/mover"
)

type createOptions struct {
	*Deps
	Name         string
	Clusters     []string
	All          bool
	ToKubeconfig string
	ToContext    string
	ToSecret     string
	// AllowInsecure accepts a kubeconfig with http or an unchecked certificate.
	AllowInsecure bool
	DryRun        bool
	NoRollback    bool
	Acknowledge   time.Duration
	Wait          bool
	Follow        bool
	Timeout       time.Duration
}

func newCmdCreate(d *Deps) *cobra.Command {
	o := &createOptions{Deps: d}
	cmd := &cobra.Command{
		Use:   "create NAME (--cluster CLUSTER ... | --all) (--to-kubeconfig FILE | --to-secret NAME[/KEY])",
		Short: "Move clusters of a namespace to another management cluster",
		Long: `Move clusters of a namespace to another management cluster.

The daemon first asks both sides everything that can be asked and changes nothing; this command waits for that answer
and shows every finding. From there the move goes on by itself: it needs nobody to watch it.`,
		Example: strings.ReplaceAll(`  # What would happen?
  $ move create prod-check --cluster prod --to-kubeconfig target.kubeconfig --dry-run
  # Move it, and follow the move to its end.
  $ move create prod --cluster prod --to-kubeconfig target.kubeconfig --follow
  # All clusters of a namespace, to the cluster whose kubeconfig is in a Secret there.
  $ move create all -n fleet --all --to-secret target/kubeconfig`, "$", d.Env.Name),
		Args: oneName("the new move"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.Clusters, "cluster", "c", nil, "Cluster to move; may be repeated")
	f.BoolVar(&o.All, "all", false, "Move all clusters of the namespace, and what is movable beside them")
	f.StringVar(&o.ToKubeconfig, "to-kubeconfig", "", "Kubeconfig file of the target; it is put into the Secret NAME-target")
	f.StringVar(&o.ToContext, "to-context", "", "Context of that file; its current one if empty")
	f.BoolVar(&o.AllowInsecure, "allow-insecure", false, "accept a kubeconfig with http or with a certificate that is not checked: the clusters' private keys are sent there")
	f.StringVar(&o.ToSecret, "to-secret", "", "Secret that has the target's kubeconfig, as NAME or NAME/KEY; the key is \"value\" if left out")
	f.BoolVar(&o.DryRun, "dry-run", false, "Ask both sides and make the plan, and change nothing")
	f.BoolVar(&o.NoRollback, "no-rollback", false, "Leave a move that fails as it stands, paused, for a human")
	f.DurationVar(&o.Acknowledge, "acknowledge", 0, "How long every controller has to acknowledge the pause; 5m if not given")
	f.BoolVar(&o.Wait, "wait", true, "Wait for the preflight's answer")
	f.BoolVarP(&o.Follow, "follow", "f", false, "Follow the move to its end, like watch")
	f.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "How long to wait for the preflight's answer")
	return cmd
}

// validate finds what is wrong before anything is made.
func (o *createOptions) validate() error {
	switch {
	case o.Flags.LogAlone():
		return cli.Usagef("a move is made in a management cluster: --log and --nats do not lead to one")
	case o.All == (len(o.Clusters) > 0):
		return cli.Usagef("say which clusters move: either --cluster, once or more, or --all")
	case (o.ToKubeconfig == "") == (o.ToSecret == ""):
		return cli.Usagef("say where to: either --to-kubeconfig FILE or --to-secret NAME[/KEY]")
	case o.ToContext != "" && o.ToKubeconfig == "":
		return cli.Usagef("--to-context needs --to-kubeconfig")
	case o.Acknowledge < 0:
		return cli.Usagef("--acknowledge is %s: it must be more than nothing", o.Acknowledge)
	case o.Timeout <= 0:
		return cli.Usagef("--timeout is %s: it must be more than nothing", o.Timeout)
	case o.Follow && !o.Wait:
		return cli.Usagef("--follow and --wait=false exclude each other")
	}
	if err := o.Flags.Validate(); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for _, c := range o.Clusters {
		if err := checkName("--cluster", c); err != nil {
			return err
		}
		if seen[c] {
			return cli.Usagef("--cluster %s is given twice", c)
		}
		seen[c] = true
	}
	name, key := o.secret()
	if err := checkName("the Secret", name); err != nil {
		return err
	}
	for _, problem := range validation.IsConfigMapKey(key) {
		return cli.Usagef("--to-secret: the key %q is not one that Kubernetes takes: %s", key, problem)
	}
	return o.Flags.Validate()
}

// secret is the Secret and the key that the move is to read.
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
	cluster, err := o.Flags.Cluster()
	if err != nil {
		return err
	}
	source := o.inCluster(cluster)
	maker := &maker{cluster: cluster}
	m := o.resource(cluster.Namespace)
	if err := maker.absent(ctx, source, m, o.Env.Name); err != nil {
		return err
	}
	if err := maker.make(ctx, m, kubeconfig); err != nil {
		return err
	}
	if kubeconfig != nil {
		o.Env.Notef("The target's kubeconfig is in Secret %s/%s; it goes when the Move is deleted.", m.Namespace, m.Spec.Target.KubeconfigSecretRef.Name)
	}
	fmt.Fprintf(o.Env.Out, "move %s/%s created\n", m.Namespace, m.Name)
	switch {
	case o.Follow:
		return o.watch(ctx, source, clientKey(m))
	case o.Wait:
		return o.answer(ctx, source, m)
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
			RollbackOnFailure: &rollback,
		},
	}
	if o.Acknowledge > 0 {
		m.Spec.Timeouts.Acknowledge = &v1alpha1.Duration{Duration: o.Acknowledge}
	}
	return m
}

// unheard is after what time without a word from a daemon the user is told.
const unheard = 15 * time.Second

// answer waits until the preflight has said yes or no, of a dry run until it is over.
func (o *createOptions) answer(ctx context.Context, source moves.Source, m *v1alpha1.Move) error {
	waiting, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	hint := time.AfterFunc(unheard, func() {
		o.Env.Notef("No daemon has taken the move up yet: `%s doctor` says whether one runs. Waiting on.", o.Env.Name)
	})
	defer hint.Stop()
	var last *v1alpha1.Move
	err := source.Watch(waiting, clientKey(m), func(now *v1alpha1.Move) bool {
		last = now
		switch now.Status.Phase {
		case "", mover.PhasePending:
			return false
		case mover.PhasePreflight:
			hint.Stop()
			return false
		default:
			hint.Stop()
			return !o.DryRun || moves.Over(now)
		}
	})
	look := fmt.Sprintf("`%s move watch %s -n %s`", o.Env.Name, m.Name, m.Namespace)
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(errors.New("interrupted: the move is made and goes on; follow it with " + look))
	case waiting.Err() != nil:
		return fmt.Errorf("the preflight has not answered within %s; the move is made and goes on: follow it with %s, or see `%s doctor`", o.Timeout, look, o.Env.Name)
	case err != nil:
		return err
	}
	return o.told(last, look)
}

// told shows the preflight's answer.
func (o *createOptions) told(m *v1alpha1.Move, look string) error {
	v, name := o.view(), m.Namespace+"/"+m.Name
	refused := m.Status.Phase == mover.PhaseFailed && m.Status.FinishedAt != nil
	if refused {
		fmt.Fprintf(o.Env.Out, "move %s refused: nothing was changed\n", name)
		if err := o.print(v.Findings(m.Status.Findings)); err != nil {
			return err
		}
		return errors.New("mend what the findings name, then make another Move under a new name, or delete this one first")
	}
	if m.Status.Phase == mover.PhaseRolledBack || m.Status.Phase == mover.PhaseRollingBack || m.Status.Phase == mover.PhaseFailed {
		return fmt.Errorf("move %s: %s", name, m.Status.Message)
	}
	said := "preflight passed, the move is under way; follow it with " + look
	if m.Status.Phase == mover.PhaseSucceeded {
		said = m.Status.Message
	}
	fmt.Fprintf(o.Env.Out, "move %s: %s\n", name, said)
	return o.print(v.Lists(m))
}

func clientKey(m *v1alpha1.Move) types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}
