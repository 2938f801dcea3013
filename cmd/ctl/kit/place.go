package kit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/view"
)

// Session is a connection to the cluster or the log from which a noun's objects are read. It
// connects to the log of a cluster only when that is needed.
type Session[T any] struct {
	*Kit
	Source[T]
	Noun    *Noun[T]
	Cluster *connect.Cluster // nil if objects are read only from a log
	Log     *connect.Log     // nil until the log is needed
}

// Open connects to the log that the user named or, by default, to the cluster.
func Open[T any](ctx context.Context, k *Kit, n *Noun[T]) (*Session[T], error) {
	if err := k.Flags.Check(); err != nil {
		return nil, err
	}
	if n.Open != nil {
		return n.Open(k)
	}
	if !k.Flags.LogOnly() && !k.At.IsSet() {
		cluster, err := k.Flags.ClusterOrLog()
		if err != nil {
			return nil, err
		}
		return clusterSession(k, n, cluster), nil
	}
	log, err := k.Flags.Log(ctx, k.Env.Err)
	if err != nil {
		return nil, err
	}
	p := &Session[T]{Kit: k, Noun: n, Log: log}
	if err := k.endAtPoint(ctx, log); err != nil {
		p.Close()
		return nil, err
	}
	p.Source = p.LogSource()
	return p, nil
}

// InCluster connects to the management cluster, for commands that write to it. If the user names a
// log, it must be the log of that cluster.
func InCluster[T any](k *Kit, n *Noun[T]) (*Session[T], error) {
	if err := k.Flags.Check(); err != nil {
		return nil, err
	}
	cluster, err := k.Flags.Cluster()
	if err != nil {
		return nil, err
	}
	return clusterSession(k, n, cluster), nil
}

func clusterSession[T any](k *Kit, n *Noun[T], cluster *connect.Cluster) *Session[T] {
	return &Session[T]{Kit: k, Noun: n, Cluster: cluster, Source: n.InCluster(cluster, k.ReportBroken)}
}

// Close closes the connection to the log.
func (p *Session[T]) Close() {
	if p.Log != nil {
		_ = p.Log.Close()
	}
}

// Key returns the key of the object with this name. Without a cluster, the namespace is the value
// of --namespace.
func (p *Session[T]) Key(name string) types.NamespacedName {
	if p.Cluster == nil {
		return Key(p.Flags.Namespace, name)
	}
	return Key(p.Cluster.Namespace, name)
}

// ConnectLog connects to the log for reading, unless it is already connected.
func (p *Session[T]) ConnectLog(ctx context.Context) error { return p.connectLog(ctx, p.Flags.Log) }

// ConnectLogToAppend works like ConnectLog, for commands that append to the log.
func (p *Session[T]) ConnectLogToAppend(ctx context.Context) error {
	return p.connectLog(ctx, p.Flags.LogToAppend)
}

func (p *Session[T]) connectLog(ctx context.Context, open func(context.Context, io.Writer) (*connect.Log, error)) error {
	if p.Log != nil {
		return nil
	}
	log, err := open(ctx, p.Env.Err)
	p.Log = log
	return err
}

// GetWithHint reads an object. If the object does not exist, the error contains the hints of
// AddHints.
func (p *Session[T]) GetWithHint(ctx context.Context, key types.NamespacedName) (T, error) {
	t, err := p.Get(ctx, key)
	return t, p.AddHints(ctx, key, err)
}

// The hints that AddHints adds to an ErrNotFound.
var (
	errDidYouMean     = errors.New("did you mean")
	errOtherNamespace = errors.New("one in namespace")
)

// HasHint reports whether an error already contains a hint of AddHints.
func HasHint(err error) bool {
	return errors.Is(err, errDidYouMean) || errors.Is(err, errOtherNamespace)
}

// AddHints adds to an ErrNotFound the namespaces that contain the name, or the most similar name.
func (p *Session[T]) AddHints(ctx context.Context, key types.NamespacedName, err error) error {
	if !errors.Is(err, ErrNotFound) || errors.Is(err, ErrGone) || HasHint(err) {
		return err
	}
	all, unread := p.List(ctx, "")
	if unread != nil {
		all, _ = p.List(ctx, key.Namespace) // fallback for users who may not read other namespaces
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
			return fmt.Errorf("%w, %w %q?", err, errDidYouMean, meant)
		}
		return err
	}
	first, others := in[0], ""
	if len(in) > 1 {
		others = fmt.Sprintf(" (and in %d more namespaces)", len(in)-1)
	}
	return fmt.Errorf("%w. There is %w %s%s: `-n %s`", err, errOtherNamespace, first, others, first)
}

// find reads an object, even if it has ended and only the log contains it.
func (p *Session[T]) find(ctx context.Context, key types.NamespacedName) (T, error) {
	t, err := p.GetWithHint(ctx, key)
	if p.Noun.GetEnded != nil && p.Cluster != nil && errors.Is(err, ErrNotFound) {
		return p.Noun.GetEnded(ctx, p, key, err)
	}
	return t, err
}

// Hint returns a command that applies a verb to an object and that can be pasted.
func (p *Session[T]) Hint(verb string, key types.NamespacedName, more ...string) string {
	return p.Kit.Hint(key.Namespace, append([]string{verb, p.Noun.Name, key.Name}, more...)...)
}

// daemonTimeout is how long the daemon may be silent before a hint is printed.
const daemonTimeout = 15 * time.Second

// Await watches an object until fn returns true. If no answer arrives before the timeout, the error
// contains recorded, which describes the request that was written, for example "the abort is
// recorded".
func (p *Session[T]) Await(ctx context.Context, key types.NamespacedName, timeout time.Duration, recorded string, fn func(T) (enough bool)) error {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	hint := time.AfterFunc(daemonTimeout, func() {
		p.Kit.Env.Notef("No daemon has answered yet: %s checks whether one runs. Still waiting.", p.Kit.Hint("", "doctor"))
	})
	defer hint.Stop()
	before, first, answered := "", true, false
	err := p.Watch(waiting, key, func(now T) bool {
		if phase := p.Noun.Phase(now); first {
			before, first = phase, false
		} else if phase != before {
			hint.Stop()
			answered = true
		}
		return fn(now)
	})
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(errors.New("interrupted: " + recorded))
	case waiting.Err() != nil && answered:
		return fmt.Errorf("it has not finished within %s; %s", view.Duration(timeout), recorded)
	case waiting.Err() != nil:
		return fmt.Errorf("no daemon has answered within %s; %s: %s checks whether one runs", view.Duration(timeout), recorded, p.Kit.Hint("", "doctor"))
	default:
		return err
	}
}

// Wait configures whether a command waits, and for how long.
type Wait struct {
	Wait    bool
	Timeout time.Duration
}

// AddFlags adds --wait and --timeout. what completes the help text "Wait ...", for example "for the
// daemon's answer".
func (w *Wait) AddFlags(f *pflag.FlagSet, timeout time.Duration, what string) {
	f.BoolVar(&w.Wait, "wait", true, "Wait "+what)
	f.DurationVar(&w.Timeout, "timeout", timeout, "How long to wait for it")
}

// Validate rejects a timeout that is not positive.
func (w *Wait) Validate() error {
	if w.Timeout <= 0 {
		return cli.Usagef("--timeout is %s: it must be greater than zero", view.Duration(w.Timeout))
	}
	return nil
}
