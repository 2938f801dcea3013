package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/term"
)

// TestHelpFitsTheTerminal: on a terminal no line of a help is longer than it is wide, but for examples, which are pasted. The words are those
// that a pipe gets.
func TestHelpFitsTheTerminal(t *testing.T) {
	help := func(path string, width int) string {
		var out bytes.Buffer
		env := cli.System("scutectl", "test")
		env.Out, env.Err, env.Size = &out, &out, func(any) (int, int, bool) { return width, 24, width > 0 }
		if code := Run(t.Context(), env, append(strings.Fields(path)[1:], "--help")); code != 0 {
			t.Fatalf("%s --help ends with %d: %s", path, code, out.String())
		}
		return out.String()
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" {
			return // it is cobra's
		}
		piped := help(cmd.CommandPath(), 0)
		for _, width := range []int{40, 60, 80} {
			got := help(cmd.CommandPath(), width)
			if diff := cmp.Diff(strings.Fields(piped), strings.Fields(got)); diff != "" {
				t.Errorf("%s --help on %d columns has other words: %s", cmd.CommandPath(), width, diff)
			}
			example := false
			for line := range strings.SplitSeq(got, "\n") {
				if line != "" && line[0] != ' ' {
					example = line == "Examples:"
				}
				if !example && term.Width(line) > width {
					t.Errorf("%s --help on %d columns: %q", cmd.CommandPath(), width, line)
				}
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newCmd(cli.System("scutectl", "test"), Options{}, new(bool)))
}
