package kit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/source"
	"scute.dev/internal/timespan"
)

// Place is where the objects of a noun are read, with the connection to the log once it is needed.
type Place[T any] struct {
	*Kit
	source.Source[T]
	Noun    *Noun[T]
	Cluster *connect.Cluster // nil if only a log is read
	Log     *connect.Log     // nil until it is needed
}

// Open returns the log that the user named, by default the cluster.
func Open[T any](ctx context.Context, k *Kit, n *Noun[T]) (*Place[T], error) {
	if err := k.Flags.Check(); err != nil {
		return nil, err
	}
	if !k.Flags.LogAlone() && !k.At.IsSet() {
		cluster, err := k.Flags.ClusterOrLog()
		if err != nil {
			return nil, err
		}
		return at(k, n, cluster), nil
	}
	log, err := k.Flags.Log(ctx, k.Env.Err)
	if err != nil {
		return nil, err
	}
	p := &Place[T]{Kit: k, Noun: n, Log: log}
	if err := k.past(ctx, log); err != nil {
		p.Close()
		return nil, err
	}
	p.Source = p.Logged()
	return p, nil
}

// InCluster returns the management cluster, for commands that write to it. A log that the user names is the log of the cluster.
func InCluster[T any](k *Kit, n *Noun[T]) (*Place[T], error) {
	if err := k.Flags.Check(); err != nil {
		return nil, err
	}
	cluster, err := k.Flags.Cluster()
	if err != nil {
		return nil, err
	}
	return at(k, n, cluster), nil
}

// at returns the place of a cluster.
func at[T any](k *Kit, n *Noun[T], cluster *connect.Cluster) *Place[T] {
	return &Place[T]{Kit: k, Noun: n, Cluster: cluster, Source: n.InCluster(cluster, k.Broken)}
}

// Close closes the connection to the log.
func (p *Place[T]) Close() {
	if p.Log != nil {
		_ = p.Log.Close()
	}
}

// Key returns the key of an object. For a log alone the namespace is --namespace, because there is no context.
func (p *Place[T]) Key(name string) types.NamespacedName {
	if p.Cluster == nil {
		return Key(p.Flags.Namespace, name)
	}
	return Key(p.Cluster.Namespace, name)
}

// ReachLog connects to the log for reading, unless it is connected.
func (p *Place[T]) ReachLog(ctx context.Context) error { return p.reach(ctx, p.Flags.Log) }

// ReachLogToAppend works like ReachLog, for a command that appends.
func (p *Place[T]) ReachLogToAppend(ctx context.Context) error {
	return p.reach(ctx, p.Flags.LogToAppend)
}

func (p *Place[T]) reach(ctx context.Context, open func(context.Context, io.Writer) (*connect.Log, error)) error {
	if p.Log != nil {
		return nil
	}
	log, err := open(ctx, p.Env.Err)
	p.Log = log
	return err
}

// Logged returns a source that reads the log, which must be connected.
func (p *Place[T]) Logged() *source.Logged[T] {
	progress := p.Env.Progress()
	l := p.Noun.InLog(p.Log)
	l.Replaying, l.Replayed = func(seq uint64) { progress.Showf("reading the log: %d commits", seq) }, progress.Done
	return l
}

// Existing reads an object. Missing adds hints to its error if there is none.
func (p *Place[T]) Existing(ctx context.Context, key types.NamespacedName) (T, error) {
	t, err := p.Get(ctx, key)
	return t, p.Missing(ctx, key, err)
}

// Hints that Missing adds to ErrNotFound. Such an error needs no further hint.
var (
	errMeant     = errors.New("did you mean")
	errElsewhere = errors.New("one in namespace")
)

// Hinted reports whether an ErrNotFound contains a hint.
func Hinted(err error) bool { return errors.Is(err, errMeant) || errors.Is(err, errElsewhere) }

// Missing adds to an ErrNotFound the namespaces that contain the name, or the most similar name.
func (p *Place[T]) Missing(ctx context.Context, key types.NamespacedName, err error) error {
	if !errors.Is(err, source.ErrNotFound) || errors.Is(err, source.ErrGone) || Hinted(err) {
		return err
	}
	all, unread := p.List(ctx, "")
	if unread != nil {
		all, _ = p.List(ctx, key.Namespace) // the user may not read other namespaces
	}
	var in, names []string
	for _, other := range all {
		switch found := p.Noun.Key(other); {
		case key.Namespace == "" || found.Namespace == key.Namespace:
			names = append(names, found.Name)
		case found.Name == key.Name:
			in = append(in, found.Namespace)
		}
	}
	if len(in) == 0 {
		if meant := cli.Nearest(key.Name, names); meant != "" {
			return fmt.Errorf("%w, %w %q?", err, errMeant, meant)
		}
		return err
	}
	first, others := in[0], ""
	if len(in) > 1 {
		others = fmt.Sprintf(" (and in %d more namespaces)", len(in)-1)
	}
	return fmt.Errorf("%w. There is %w %s%s: `-n %s`", err, errElsewhere, first, others, first)
}

// find reads an object by name, even if it has ended.
func (p *Place[T]) find(ctx context.Context, key types.NamespacedName) (T, error) {
	t, err := p.Existing(ctx, key)
	if p.Noun.Ended != nil && p.Cluster != nil && errors.Is(err, source.ErrNotFound) {
		return p.Noun.Ended(ctx, p, key, err)
	}
	return t, err
}

// Hint returns a command about an object that can be pasted.
func (p *Place[T]) Hint(verb string, key types.NamespacedName, more ...string) string {
	return p.Kit.Hint(key.Namespace, append([]string{verb, p.Noun.Name, key.Name}, more...)...)
}

// Answer describes what a command waits for after it has written a request.
type Answer struct {
	Timeout time.Duration
	// Standing describes what is written, for an error if the answer does not arrive: "the abort is recorded".
	Standing string
}

// Await watches an object until fn returns enough.
func (p *Place[T]) Await(ctx context.Context, key types.NamespacedName, a Answer, fn func(T) (enough bool)) error {
	waiting, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	err := p.Watch(waiting, key, fn)
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(errors.New("interrupted: " + a.Standing))
	case waiting.Err() != nil:
		return fmt.Errorf("no daemon has answered within %s; %s: %s says whether one runs", timespan.Text(a.Timeout), a.Standing, p.Kit.Hint("", "doctor"))
	default:
		return err
	}
}
