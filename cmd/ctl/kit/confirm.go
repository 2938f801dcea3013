package kit

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"scute.dev/cmd/ctl/cli"
)

// YesVar adds the option --yes, which skips the confirmation.
func YesVar(f *pflag.FlagSet, yes *bool) { f.BoolVarP(yes, "yes", "y", false, "Do not ask") }

// Confirm asks the question on a terminal. Elsewhere it requires --yes, and its error contains without: what the command would do.
func (k *Kit) Confirm(question, without string) error {
	return k.ConfirmBy("--yes", question, without)
}

// ConfirmBy works like Confirm, with another option than --yes.
func (k *Kit) ConfirmBy(option, question, without string) error {
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
