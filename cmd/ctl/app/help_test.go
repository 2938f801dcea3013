package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
)

// TestHelpFitsTheTerminal checks that texts and the descriptions of flags are wrapped to the width
// of the terminal, and that wrapping does not change the words.
func TestHelpFitsTheTerminal(t *testing.T) {
	help := func(path string, width int) string {
		var out bytes.Buffer
		env := cli.System("scutectl", "test")
		env.Out, env.Err, env.Size = &out, &out, func(any) (int, int, bool) { return width, 24, width > 0 }
		if code := Run(t.Context(), env, append(strings.Fields(path)[1:], "--help")); code != 0 {
			t.Fatalf("%s --help: exit code %d: %s", path, code, out.String())
		}
		return out.String()
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" {
			return // cobra generates it
		}
		piped := help(cmd.CommandPath(), 0)
		for _, width := range []int{80, 100} {
			got := help(cmd.CommandPath(), width)
			if diff := cmp.Diff(strings.Fields(piped), strings.Fields(got)); diff != "" {
				t.Errorf("%s --help with %d columns has other words: %s", cmd.CommandPath(), width, diff)
			}
			section := ""
			for line := range strings.SplitSeq(got, "\n") {
				if strings.HasSuffix(line, ":") && line[0] != ' ' {
					section = line
				}
				if (section == "" && !strings.HasPrefix(line, " ") || strings.HasSuffix(section, "Flags:")) && cli.Width(line) > width {
					t.Errorf("%s --help with %d columns has the longer line %q", cmd.CommandPath(), width, line)
				}
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newCmd(cli.System("scutectl", "test"), Options{}, new(bool)))
}
