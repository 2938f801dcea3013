package kit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/cli"
)

// Watch returns `watch NOUN [NAME]`.
func Watch[T any](env *cli.Env, n *Noun[T]) *cobra.Command {
	o, cmd := newList(env, n, " [NAME]", 1)
	o.Watch = true
	cmd.Short = "Follow " + n.WithArticle + " until it ends, or all of a namespace"
	cmd.Long = strings.TrimSpace("Follow " + n.WithArticle + " until it ends; without a name, all " + n.Plural + " of the namespace, until all have ended. " +
		"On a\nterminal the view is redrawn in place; in a pipe each change is a line.\n\n" + n.WatchLong)
	cmd.Example = Examples(env, "$ watch "+n.Name+" prod -n fleet", "$ watch "+n.Plural+" -A")
	o.Format.AddFlag(cmd, "json", "yaml", "jsonpath=...")
	return cmd
}

// Follow shows an object until it is finished, and returns an error with the exit status of its
// outcome. A data format prints the last state to standard output, and everything else to standard
// error.
func (p *Session[T]) Follow(ctx context.Context, key types.NamespacedName, format *cli.Format) error {
	n, draw := p.Noun, p.drawer(format, true, false)
	last, err := followUntil(ctx, func(ctx context.Context, fn func([]T) bool) error {
		each := func(t T) bool { return fn([]T{t}) }
		err := p.Watch(ctx, key, each)
		if n.GetEnded == nil || !errors.Is(err, ErrNotFound) || ctx.Err() != nil {
			return err
		}
		return p.followLog(ctx, key, p.AddHints(ctx, key, err), each)
	}, func(list []T) bool { return n.IsFinished(list[0]) }, draw)
	if len(last) > 0 && key.Namespace == "" {
		key = n.Key(last[0])
	}
	err = p.AddHints(ctx, key, err)
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(fmt.Errorf("interrupted: %s; see %s", n.AfterWatch, p.Hint("watch", key)))
	case errors.Is(err, errNotDriven) && n.ContinueHint != nil:
		return fmt.Errorf("%w; %s", err, n.ContinueHint(p, key))
	case err != nil || len(last) == 0:
		return err
	}
	if n.Finish != nil {
		return n.Finish(ctx, p, p.withLogDetails(ctx, last, format)[0], format)
	}
	return p.finish(ctx, last, true, format)
}

// finish prints the last states of the objects if the format prints data. If an object failed, it
// returns the exit status as an error without a message.
func (p *Session[T]) finish(ctx context.Context, last []T, one bool, format *cli.Format) error {
	if format.Data() {
		if err := format.Print(p.Env.Out, p.Noun.Data(p.withLogDetails(ctx, last, format), one)); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(last, p.Noun.HasFailed) {
		return cli.SilentExit(cli.ExitFailed)
	}
	return nil
}

// followLog follows in the log an object that is not, or no longer, in the cluster.
func (p *Session[T]) followLog(ctx context.Context, key types.NamespacedName, notFound error, fn func(T) (enough bool)) error {
	t, err := p.Noun.GetEnded(ctx, p, key, notFound)
	if err != nil || fn(t) {
		return err
	}
	return p.LogSource().Watch(ctx, key, fn)
}

// FollowAll shows the objects of a namespace ("" for all) until all have ended. It waits for the
// first object, and returns an error if an object failed.
func (p *Session[T]) FollowAll(ctx context.Context, namespace string, format *cli.Format) error {
	n, draw := p.Noun, p.drawer(format, false, namespace == "")
	open, told := make(map[types.NamespacedName]bool), false // open: objects that existed and are not known to have ended
	last, err := followUntil(ctx, func(ctx context.Context, fn func([]T) bool) error {
		return p.WatchAll(ctx, namespace, fn)
	}, func(list []T) bool {
		over := true
		for _, t := range list {
			open[n.Key(t)] = true
			over = over && n.IsFinished(t)
		}
		if len(open) == 0 && !told && (p.Cluster != nil || !p.Log.Static) {
			told = true
			p.Env.Notef("There are %s yet: waiting for the first one.", n.emptyMessage(namespace))
		}
		return over && len(open) > 0
	}, draw)
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(errors.New("interrupted: operations in progress continue"))
	case errors.Is(err, errNotDriven) && len(open) == 0:
		return fmt.Errorf("there are %s, and none can appear: no process writes to the log in %s", n.emptyMessage(namespace), p.Log.Where)
	case err != nil:
		return err
	}
	for _, t := range last {
		delete(open, n.Key(t))
	}
	if n.GetEnded != nil {
		for key := range open {
			ended, err := followUntil(ctx, func(ctx context.Context, fn func([]T) bool) error {
				return p.followLog(ctx, key, ErrGone, func(t T) bool { return fn([]T{t}) })
			}, func(list []T) bool { return n.IsFinished(list[0]) }, p.lines(format).draw)
			if err != nil {
				return err
			}
			last = append(last, ended...)
		}
	}
	return p.finish(ctx, last, false, format)
}

// withLogDetails adds to the objects what only the log contains, if the format prints data. Tables
// do not show these details.
func (p *Session[T]) withLogDetails(ctx context.Context, list []T, format *cli.Format) []T {
	if format.Data() && p.Noun.AddLogDetails != nil {
		for i := range list {
			list[i] = p.Noun.AddLogDetails(ctx, p, list[i])
		}
	}
	return list
}

// followUntil follows objects until over returns true. It calls draw after each change and every
// second, and returns the last state of the objects.
func followUntil[T any](ctx context.Context, follow func(context.Context, func([]T) (enough bool)) error, over func([]T) bool, draw func([]T) error) (last []T, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex // only one goroutine draws at a time
	var ticking sync.WaitGroup
	ticking.Go(func() {
		clock := time.NewTicker(time.Second)
		defer clock.Stop()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-clock.C:
				mu.Lock()
				_ = draw(last)
				mu.Unlock()
			}
		}
	})
	var drawErr error
	err = follow(ctx, func(list []T) bool {
		mu.Lock()
		defer mu.Unlock()
		enough := over(list)
		last, drawErr = list, draw(list)
		return enough || drawErr != nil
	})
	stop()
	ticking.Wait()
	return last, cmp.Or(drawErr, err)
}
