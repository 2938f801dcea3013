package kit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
)

// Kit contains what every command needs: the environment, and the flags that select the cluster or
// log to read.
type Kit struct {
	Env   *cli.Env
	Flags *connect.Flags
	// At is the point of the log to show. If it is not set, the present is shown.
	At point

	now      time.Time // time of At
	reported time.Time // when a broken connection was last reported
}

// New returns a Kit, and adds to the command the flags that select the cluster or log to read. what
// names the objects in the help of --namespace, for example "moves". If what is "", New does not
// add --namespace.
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

// OpenLog opens the log for reading.
func (k *Kit) OpenLog(ctx context.Context) (*connect.Log, error) {
	if err := k.Flags.Check(); err != nil {
		return nil, err
	}
	return k.Flags.Log(ctx, k.Env.Err)
}

// View returns the settings for showing objects on standard output. Ages are relative to the time
// of --at, if that is set.
func (k *Kit) View() View {
	v := k.ViewOn(k.Env.Out)
	if !k.now.IsZero() {
		v.Now = k.now
	}
	return v
}

// ViewOn returns the settings for showing objects on a stream. Ages are relative to the present.
func (k *Kit) ViewOn(stream io.Writer) View {
	width, _, _ := k.Env.Size(stream)
	return View{Paint: cli.Paint{On: k.Env.Colored(stream)}, Width: width, Now: k.Env.Now()}
}

// Print writes lines to standard output. It removes control sequences other than colors.
func (k *Kit) Print(lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(k.Env.Out, cli.Safe(line)); err != nil {
			return err
		}
	}
	return nil
}

const reportInterval = time.Minute

// ReportBroken reports that a watch broke and is restarted, at most once a minute.
func (k *Kit) ReportBroken(err error) {
	if now := k.Env.Now(); now.Sub(k.reported) >= reportInterval {
		k.reported = now
		k.Env.Notef("%s: %s the connection is lost, retrying: %v", k.Env.Name, cli.Exact(now), err)
	}
}

// Hint returns a command that can be pasted. It consists of words, and of the flags that select the
// same cluster or log. If only a log is read, it omits -n default, because names are then found in
// all namespaces.
func (k *Kit) Hint(namespace string, words ...string) string {
	words = append(words, k.Flags.ConnectArgs()...)
	if namespace != "" && (namespace != "default" || !k.Flags.LogOnly() || k.Flags.Namespace != "") {
		words = append(words, "-n", namespace)
	}
	return k.Env.Hint(words...)
}

// OneName returns a check that requires exactly one argument. If there is none, the error says that
// the command needs the name of what, for example "a move".
func OneName(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cli.Usagef("%s needs the name of %s", cmd.CommandPath(), what)
		}
		return Names(1)(cmd, args)
	}
}

// Names returns a check that accepts at most limit names. -1 means no limit.
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

// CheckName checks, before any request is sent, that the API server would accept a name.
func CheckName(what, name string) error {
	for _, problem := range validation.IsDNS1123Subdomain(name) {
		return cli.Usagef("%s %q is not a valid name in Kubernetes: %s", what, name, problem)
	}
	return nil
}

// Key returns the key of an object.
func Key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// YesVar adds the option --yes, which skips the confirmation.
func YesVar(f *pflag.FlagSet, yes *bool) { f.BoolVarP(yes, "yes", "y", false, "Do not ask") }

// Confirm asks the question on a terminal. Without a terminal it returns an error that tells the
// user to add the option, for example --yes, and that contains without, a description of the
// effect.
func (k *Kit) Confirm(option, question, without string) error {
	if _, _, terminal := k.Env.Size(k.Env.In); !terminal {
		return cli.Usagef("nothing was changed: add %s to %s", option, without)
	}
	fmt.Fprintf(k.Env.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(k.Env.In).ReadString('\n')
	if err != nil || !strings.EqualFold(strings.TrimSpace(answer), "y") {
		return errors.New("nothing was changed")
	}
	return nil
}
