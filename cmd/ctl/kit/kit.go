package kit

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/filter"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/term"
)

// Kit is what every command has at hand: its world, and where it reads.
type Kit struct {
	Env   *cli.Env
	Flags *connect.Flags
	// At is the point of the log that is looked at; not set: now.
	At filter.Point

	now time.Time // at that point

	broken struct{ since, last, told time.Time } // the connection, if it is
}

// New adds the options that say where a command reads. The namespace is that of what: "moves"; "" leaves it out.
func New(env *cli.Env, cmd *cobra.Command, what string) *Kit {
	k := &Kit{Env: env, Flags: connect.New()}
	f := cmd.Flags()
	k.Flags.AddFlags(f)
	k.Flags.AddLocal(f)
	if what != "" {
		k.Flags.AddNamespace(f, what)
	}
	return k
}

// View is how things are shown on the standard output now.
func (k *Kit) View() show.View {
	v := k.ViewOn(k.Env.Out)
	v.Now = k.moment()
	return v
}

// ViewOn is how things are shown on a stream.
func (k *Kit) ViewOn(stream io.Writer) show.View {
	width, _, _ := k.Env.Size(stream)
	return show.View{Paint: term.Paint{On: k.Env.Colored(stream)}, Width: width, Now: k.Env.Now()}
}

// Print writes lines that were drawn.
func (k *Kit) Print(lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(k.Env.Out, term.Safe(line)); err != nil {
			return err
		}
	}
	return nil
}

// How a broken connection is told: one line, and another one every minute. It is another outage after a time without an error.
const (
	tellEvery  = time.Minute
	outageOver = 30 * time.Second
)

// Broken tells that a watch broke and is taken up again.
func (k *Kit) Broken(err error) {
	now, b := k.Env.Now(), &k.broken
	if now.Sub(b.last) > outageOver {
		b.since, b.told = now, time.Time{}
	}
	if b.last = now; now.Sub(b.told) < tellEvery {
		return
	}
	b.told = now
	what := "the connection broke"
	if b.since != now {
		what = "no connection since " + term.Exact(b.since)
	}
	k.Env.Notef("%s: %s %s, trying again: %v", k.Env.Name, term.Exact(now), what, err)
}

// Screen is the terminal that a display is redrawn on.
func (k *Kit) Screen(stream io.Writer) *term.Screen {
	return &term.Screen{Out: stream, Size: func() (width, height int) {
		width, height, _ = k.Env.Size(stream)
		return width, height
	}}
}

// Hint is a command line that can be pasted: words, and the options that lead to the same place again. Of a log alone a
// name leads to its thing in any namespace; in a cluster it is looked for in that of the context.
func (k *Kit) Hint(namespace string, words ...string) string {
	words = append(words, k.Flags.Again()...)
	if namespace != "" && (namespace != "default" || !k.Flags.LogAlone() || k.Flags.Namespace != "") {
		words = append(words, "-n", namespace)
	}
	return k.Env.Hint(words...)
}

// OneName says of a command that it takes the name of one thing: "a move".
func OneName(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return cli.Usagef("%s needs the name of %s", cmd.CommandPath(), what)
		case len(args) > 1:
			return cli.Usagef("%s takes one name, not %d", cmd.CommandPath(), len(args))
		}
		return CheckName("the name", args[0])
	}
}

// Names says of a command that it takes names, up to a number; -1 is any.
func Names(limit int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if limit >= 0 && len(args) > limit {
			return cli.Usagef("%s takes one name, not %d", cmd.CommandPath(), len(args))
		}
		for _, name := range args {
			if err := CheckName("the name", name); err != nil {
				return err
			}
		}
		return nil
	}
}

// CheckName holds a name against the rule of the API server, before anything is sent.
func CheckName(what, name string) error {
	for _, problem := range validation.IsDNS1123Subdomain(name) {
		return cli.Usagef("%s %q is not one that Kubernetes takes: %s", what, name, problem)
	}
	return nil
}

// Key is a name in a namespace.
func Key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}
