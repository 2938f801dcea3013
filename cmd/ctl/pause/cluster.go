package pause

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

// timeout is the default limit on how long a Pause may take to be acknowledged, or to end.
const timeout = 6 * time.Minute

type clusterOptions struct {
	*kit.Kit
	noun                   *noun
	Name, Selector, Reason string
	Wait                   kit.Wait
}

func newCmdPause(env *cli.Env, n *noun) *cobra.Command {
	o := &clusterOptions{noun: n}
	cmd := &cobra.Command{
		Use: "cluster NAME", Aliases: []string{"clusters"},
		Short: "Pause a cluster until it is resumed, and wait until every object acknowledges",
		Long: `Pause a cluster: create a Pause with its name, which keeps it paused until scutectl resume cluster NAME deletes the Pause.
With --selector the Pause NAME pauses all clusters of the namespace that have the labels.

After the Pause is deleted, objects that were paused before, or that another Pause keeps paused, stay paused.`,
		Example: kit.Examples(env, "$ pause cluster prod -n fleet --reason 'maintenance of the network'", "$ pause cluster north -n fleet --selector region=north"),
		Args:    kit.OneName("a cluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if cmd.Flags().Changed("selector") && o.Selector == "" {
				return cli.Usagef("--selector is empty: name the labels, or leave it out to pause cluster %s", o.Name)
			}
			return o.pause(cmd.Context())
		},
	}
	o.Kit = kit.New(env, cmd, "clusters")
	f := cmd.Flags()
	f.StringVarP(&o.Selector, "selector", "l", "", "Pause the clusters with these labels; NAME is then the name of the Pause")
	cli.ReasonVar(f, &o.Reason)
	o.Wait.AddFlags(f, timeout, "until every object has acknowledged the pause")
	return cmd
}

func newCmdResume(env *cli.Env, n *noun) *cobra.Command {
	o := &clusterOptions{noun: n}
	cmd := &cobra.Command{
		Use: "cluster NAME", Aliases: []string{"clusters"},
		Short: "Resume a cluster that scutectl pause cluster has paused, and wait until it reconciles again",
		Long: `Delete the Pause NAME: the earlier pause state of each of its clusters is restored. A cluster that was paused before stays
paused, and so does a cluster that another Pause or a task of a run keeps paused.`,
		Example: kit.Examples(env, "$ resume cluster prod -n fleet"),
		Args:    kit.OneName("a cluster"),
		RunE:    kit.WithName(&o.Name, o.resume),
	}
	o.Kit = kit.New(env, cmd, "clusters")
	cmd.ValidArgsFunction = kit.Complete(o.Kit, n, 1)
	o.Wait.AddFlags(cmd.Flags(), timeout, "until every object reconciles again")
	return cmd
}

func (o *clusterOptions) open() (*session, error) {
	if err := o.Wait.Validate(); err != nil {
		return nil, err
	}
	return kit.InCluster(o.Kit, o.noun)
}

// spec returns the spec of a Pause that selects the named cluster, or the clusters with the given
// labels.
func (o *clusterOptions) spec() (v1alpha1.PauseSpec, error) {
	s := v1alpha1.PauseSpec{Clusters: []string{o.Name}, Reason: o.Reason}
	if o.Selector == "" {
		return s, nil
	}
	selector, err := metav1.ParseToLabelSelector(o.Selector)
	if err != nil {
		return s, cli.Usagef("--selector %q: %w", o.Selector, err)
	}
	s.Clusters, s.Selector = nil, selector
	return s, nil
}

func (o *clusterOptions) pause(ctx context.Context) error {
	spec, err := o.spec()
	if err != nil {
		return err
	}
	p, err := o.open()
	if err != nil {
		return err
	}
	defer p.Close()
	key := p.Key(o.Name)
	made := &v1alpha1.Pause{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: spec}
	if err := p.Cluster.Client.Create(ctx, made); apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("pause %s already exists: %s shows it", key, p.Hint("describe", key))
	} else if err != nil {
		return fmt.Errorf("creating the Pause: %w", p.Cluster.Explain(err))
	}
	if err := o.Env.Linef("pause %s created", key); err != nil || !o.Wait.Wait {
		return err
	}
	progress := o.Env.Progress()
	var last *v1alpha1.Pause
	recorded := "the Pause is created: " + p.Hint("describe", key) + " shows what it waits for"
	err = p.Await(ctx, key, o.Wait.Timeout, recorded, func(now *v1alpha1.Pause) bool {
		last = now.DeepCopy()
		progress.Showf("%s", fact(now))
		return settled(now) || now.Status.Phase == v1alpha1.PauseTimedOut
	})
	progress.Done()
	if err != nil {
		return err
	}
	if err := o.Env.Linef("pause %s: %s", key, last.Status.Message); err != nil {
		return err
	}
	if !settled(last) {
		return fmt.Errorf("pause %s: %s; %s shows more", key, last.Status.Next, p.Hint("describe", key))
	}
	return nil
}

func (o *clusterOptions) resume(ctx context.Context) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	defer p.Close()
	key := p.Key(o.Name)
	made, err := remove(ctx, p, key, nil)
	if err != nil {
		return err
	}
	if !o.Wait.Wait {
		return printDeleting(o.Kit, key)
	}
	progress := o.Env.Progress()
	said := ""
	recorded := "the deletion is recorded: " + p.Hint("describe", key) + " shows what it waits for"
	err = p.Await(ctx, key, o.Wait.Timeout, recorded, func(now *v1alpha1.Pause) bool {
		progress.Showf("%s", fact(now))
		if now.Status.FinishedAt != nil {
			said = now.Status.Message
		}
		return now.UID != made.UID
	})
	progress.Done()
	if err != nil && !errors.Is(err, kit.ErrNotFound) {
		return err
	}
	if said == "" {
		said = "it has ended"
	}
	return o.Env.Linef("pause %s: %s", key, said)
}

// Delete deletes a Pause. It fails if the Pause has changed since the user saw it.
func Delete(ctx context.Context, k *kit.Kit, seen *kit.Seen, name string) error {
	p, err := kit.InCluster(k, newNoun())
	if err != nil {
		return err
	}
	defer p.Close()
	key := p.Key(name)
	if _, err := remove(ctx, p, key, seen); err != nil {
		return err
	}
	return printDeleting(k, key)
}

func printDeleting(k *kit.Kit, key types.NamespacedName) error {
	return k.Env.Linef("pause %s is being deleted", key)
}

// remove deletes a Pause, and returns its last state.
func remove(ctx context.Context, p *session, key types.NamespacedName, seen *kit.Seen) (*v1alpha1.Pause, error) {
	made, err := p.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := seen.Check(made, made.Status.PauseID); err != nil {
		return nil, err
	}
	if err := client.IgnoreNotFound(p.Cluster.Client.Delete(ctx, made, client.Preconditions{UID: &made.UID})); err != nil {
		return nil, fmt.Errorf("deleting the Pause: %w", p.Cluster.Explain(err))
	}
	return made, nil
}
