package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/moves"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/term"
	"scute.dev/cmd/ctl/watch"
	"scute.dev/mover"
)

func newCmdWatch(d *Deps) *cobra.Command {
	return &cobra.Command{
		Use:   "watch NAME",
		Short: "Follow a move until it ends",
		Long: `Follow a move until it ends. On a terminal its standing is redrawn in place; in a pipe each new fact is a line.

Exit status: 0 the move succeeded, 1 it failed or was rolled back, 130 interrupted (the move goes on).`,
		Args: oneName("a move"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			source, cluster, log, err := d.open(ctx)
			if err != nil {
				return err
			}
			if log != nil {
				defer log.Close()
			}
			return d.watch(ctx, source, d.key(cluster, args[0]))
		},
		ValidArgsFunction: d.complete,
	}
}

// watch follows a Move to its end and makes an exit status of it.
func (d *Deps) watch(ctx context.Context, source moves.Source, key types.NamespacedName) error {
	var draw watch.Drawer[*v1alpha1.Move] = &lines{Deps: d}
	if d.Env.Terminal() {
		draw = &display{Deps: d, screen: term.Screen{Out: d.Env.Out, Size: d.size}}
	}
	last, _, err := watch.Until(ctx, func(ctx context.Context, fn func(*v1alpha1.Move) bool) error { return source.Watch(ctx, key, fn) }, moves.Over, draw)
	return d.ended(ctx, key, last, err)
}

func (d *Deps) ended(ctx context.Context, key types.NamespacedName, m *v1alpha1.Move, err error) error {
	if ctx.Err() != nil {
		namespace := key.Namespace
		if m != nil {
			namespace = m.Namespace
		}
		return cli.Interrupted(fmt.Errorf("interrupted: the move goes on without being watched; see `%s move watch %s -n %s`", d.Env.Name, key.Name, namespace))
	}
	if err != nil || m == nil {
		return err
	}
	if m.Status.Phase == mover.PhaseSucceeded {
		return nil
	}
	return cli.Failed() // what came of it has been shown
}

// display redraws a terminal in place.
type display struct {
	*Deps
	screen term.Screen
}

// Draw writes the block anew.
func (t *display) Draw(m *v1alpha1.Move) error {
	v := t.view()
	name := v.Paint.Text(term.Bold, m.Namespace+"/"+m.Name)
	lines := append([]string{name}, v.Standing(m)...)
	return t.screen.Draw(append(lines, v.Lists(m)...))
}

// Tick moves the clock on.
func (t *display) Tick(m *v1alpha1.Move) { _ = t.Draw(m) }

func (d *Deps) size() (width, height int) {
	width, height, _ = d.Env.Size(d.Env.Out)
	return width, height
}

// lines writes one line for each new fact, of those that only count on at most one a second.
type lines struct {
	*Deps
	last  string
	phase mover.Phase
	at    time.Time
}

// Draw writes what is new.
func (l *lines) Draw(m *v1alpha1.Move) error {
	fact, now := show.Fact(m), l.Env.Now()
	if fact == l.last || m.Status.Phase == l.phase && now.Sub(l.at) < time.Second && !moves.Over(m) {
		return nil // the next tick looks again
	}
	first := l.last == ""
	l.last, l.phase, l.at = fact, m.Status.Phase, now
	_, err := fmt.Fprintf(l.Env.Out, "%s %s/%s %s\n", term.Exact(l.Env.Now()), m.Namespace, m.Name, fact)
	if err == nil && (first || moves.Over(m)) {
		err = l.findings(m)
	}
	return err
}

func (l *lines) findings(m *v1alpha1.Move) error {
	var errs []error
	for _, f := range m.Status.Findings {
		_, err := fmt.Fprintf(l.Env.Out, "%s %s/%s %s: %s: %s; remedy: %s\n", term.Exact(l.Env.Now()), m.Namespace, m.Name,
			f.Severity, f.Field, term.Clean(f.Message), term.Clean(f.Remedy))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Tick writes what was held back.
func (l *lines) Tick(m *v1alpha1.Move) { _ = l.Draw(m) }
