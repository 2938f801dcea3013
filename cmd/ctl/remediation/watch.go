package remediation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/remediations"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/source"
	"scute.dev/cmd/ctl/term"
	"scute.dev/cmd/ctl/watch"
)

type watchOptions struct {
	*Deps
	Name          string
	AllNamespaces bool
}

func newCmdWatch(d *Deps) *cobra.Command {
	o := &watchOptions{Deps: d}
	cmd := &cobra.Command{
		Use:   "watch [MACHINE]",
		Short: "Follow a remediation until it is over, or all of a namespace",
		Long: `Follow a remediation until it is over; without a name all of the namespace: from the first one, until none is left that is
not over. On a terminal it is redrawn in place; in a pipe each new fact is a line.

Exit status: 0 the machine was replaced, or is healthy again; 1 it was not; 130 interrupted (the remediation goes on).`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if err := checkName(args[0]); err != nil {
					return err
				}
				o.Name = args[0]
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: d.complete,
	}
	cmd.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "Follow the remediations of all namespaces")
	return cmd
}

func (o *watchOptions) run(ctx context.Context) error {
	if o.AllNamespaces && o.Name != "" {
		return cli.Usagef("a name and --all-namespaces exclude each other")
	}
	at, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer at.Close()
	key := o.key(at, o.Name)
	if o.Name != "" {
		return o.one(ctx, at, key)
	}
	if o.AllNamespaces {
		key.Namespace = ""
	}
	return o.all(ctx, at, key.Namespace)
}

// all follows the remediations of a namespace, "" for all.
func (o *watchOptions) all(ctx context.Context, at *opened, namespace string) error {
	seen := make(map[types.NamespacedName]bool) // what is not over goes with its machine
	told := false
	last, _, err := watch.Until(ctx, func(ctx context.Context, fn func([]*v1alpha1.SurgeRemediation) bool) error {
		return at.WatchAll(ctx, namespace, fn)
	}, func(list []*v1alpha1.SurgeRemediation) bool {
		over := true
		for _, r := range list {
			seen[types.NamespacedName{Namespace: r.Namespace, Name: r.Name}] = true
			over = over && remediations.Over(r)
		}
		if len(seen) == 0 && !told {
			told = true
			o.Env.Notef("No machine is under remediation yet: waiting for the first one.")
		}
		return over && len(seen) > 0
	}, o.drawer(namespace == ""))
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(errors.New("interrupted: what is under way goes on without being watched"))
	case err != nil:
		return err
	}
	good := true
	for _, r := range last {
		good = good && remediations.Good(r.Status.Phase)
		delete(seen, types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	}
	for key := range seen {
		r, err := o.ended(ctx, at, key, true)
		if err != nil {
			return err
		}
		if err := (&lines{Deps: o.Deps, last: make(map[string]string)}).Draw([]*v1alpha1.SurgeRemediation{r}); err != nil {
			return err
		}
		good = good && remediations.Good(r.Status.Phase)
	}
	if !good {
		return cli.Failed() // what came of it has been shown
	}
	return nil
}

// one follows the remediation of one machine.
func (o *watchOptions) one(ctx context.Context, at *opened, key types.NamespacedName) error {
	draw := o.drawer(false)
	last, seen, err := watch.Until(ctx, func(ctx context.Context, fn func([]*v1alpha1.SurgeRemediation) bool) error {
		return at.Watch(ctx, key, func(r *v1alpha1.SurgeRemediation) bool { return fn([]*v1alpha1.SurgeRemediation{r}) })
	}, func(list []*v1alpha1.SurgeRemediation) bool { return remediations.Over(list[0]) }, draw)
	switch {
	case ctx.Err() != nil:
		namespace := key.Namespace
		if len(last) > 0 {
			namespace = last[0].Namespace
		}
		return cli.Interrupted(fmt.Errorf("interrupted: the remediation goes on without being watched; see %s", o.line("watch", namespace, key.Name)))
	case errors.Is(err, source.ErrNotFound): // its resource goes with its machine
		r, findErr := o.ended(ctx, at, key, seen)
		if findErr != nil {
			return findErr
		}
		last = []*v1alpha1.SurgeRemediation{r}
		if err := draw.Draw(last); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	if len(last) == 0 || !remediations.Good(last[0].Status.Phase) {
		return cli.Failed()
	}
	return nil
}

// lastFacts is how long the end of a remediation whose resource is gone is waited for.
const lastFacts = time.Minute

// ended reads the end of a remediation from the log.
func (o *watchOptions) ended(ctx context.Context, at *opened, key types.NamespacedName, seen bool) (*v1alpha1.SurgeRemediation, error) {
	r, err := o.find(ctx, at, key)
	switch {
	case err != nil && seen:
		return nil, fmt.Errorf("the machine is gone, and its SurgeRemediation with it; how it ended is not known here: %w", err)
	case err != nil:
		return nil, err
	case !remediations.Over(r) && at.log != nil && !at.log.Static: // the last facts come a moment after the machine has gone
		waiting, cancel := context.WithTimeout(ctx, lastFacts)
		defer cancel()
		if err := o.logged(at.log).Watch(waiting, key, func(now *v1alpha1.SurgeRemediation) bool {
			r = now
			return remediations.Over(now)
		}); err != nil && waiting.Err() == nil {
			return nil, err
		}
	}
	if !remediations.Over(r) {
		return nil, fmt.Errorf("the SurgeRemediation of %s is gone, and in the log it is %s: %s", key, r.Status.Phase, r.Status.Message)
	}
	return r, nil
}

func (o *watchOptions) drawer(namespaces bool) watch.Drawer[[]*v1alpha1.SurgeRemediation] {
	if !o.Env.Terminal() {
		return &lines{Deps: o.Deps, last: make(map[string]string)}
	}
	return &display{Deps: o.Deps, single: o.Name != "", namespaces: namespaces, screen: term.Screen{Out: o.Env.Out, Size: func() (width, height int) {
		width, height, _ = o.Env.Size(o.Env.Out)
		return width, height
	}}}
}

// display redraws a terminal in place.
type display struct {
	*Deps
	screen             term.Screen
	single, namespaces bool
}

// Draw writes the block anew.
func (t *display) Draw(list []*v1alpha1.SurgeRemediation) error {
	v := t.view()
	switch {
	case len(list) == 0:
		return nil
	case !t.single:
		return t.screen.Draw(v.RemediationTable(list, t.namespaces, false))
	}
	r := list[0]
	return t.screen.Draw(append([]string{v.Paint.Text(term.Bold, r.Namespace+"/"+r.Name)}, v.RemediationStanding(r)...))
}

// Tick moves the clock on.
func (t *display) Tick(list []*v1alpha1.SurgeRemediation) { _ = t.Draw(list) }

// lines writes one line for each new fact.
type lines struct {
	*Deps
	last map[string]string
}

// Draw writes what is new.
func (l *lines) Draw(list []*v1alpha1.SurgeRemediation) error {
	for _, r := range list {
		name, fact := r.Namespace+"/"+r.Name, show.RemediationFact(r)
		if l.last[name] == fact {
			continue
		}
		l.last[name] = fact
		if err := l.write(name, fact); err != nil {
			return err
		}
	}
	for name := range l.last {
		if slices.ContainsFunc(list, func(r *v1alpha1.SurgeRemediation) bool { return r.Namespace+"/"+r.Name == name }) {
			continue
		}
		delete(l.last, name)
		if err := l.write(name, "gone with its machine, or because that is well again: describe says how it ended"); err != nil {
			return err
		}
	}
	return nil
}

func (l *lines) write(name, fact string) error {
	_, err := fmt.Fprintf(l.Env.Out, "%s %s %s\n", term.Exact(l.Env.Now()), name, fact)
	return err
}

// Tick has nothing to add: a line has its time.
func (*lines) Tick([]*v1alpha1.SurgeRemediation) {}
