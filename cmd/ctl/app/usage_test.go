package app

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scute.dev/cmd/ctl/cli"
)

// A word in backquotes in the usage of an option is shown as the name of its value.
func TestOptionsHaveValuesOfAType(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if strings.Contains(f.Usage, "`") {
				value, _ := pflag.UnquoteUsage(f)
				t.Errorf("%s --help calls the value of --%s %q", cmd.CommandPath(), f.Name, value)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newCmd(cli.System("scutectl", "test"), Options{}, new(bool)))
}
