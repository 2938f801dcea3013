package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scute.dev/cmd/ctl/cli"
)

var (
	// documentedBlock matches a block of lines that a user types.
	documentedBlock = regexp.MustCompile("(?sm)^ *```(?:sh|console)?\n(.*?)^ *```$")
	// documentedInline matches a command in a sentence, which may span lines.
	documentedInline = regexp.MustCompile("(?s)`(scutectl [a-z][^`]*)`")
	// word matches a word of a command line, in quotes or up to a space.
	word = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)
	// end matches what ends a command: a pipe, another command or a comment.
	end = regexp.MustCompile(`\s(\||&|#|;).*|;.*`)
)

// TestDocumentedCommands checks that the commands and flags in every scutectl line of the documentation and the
// examples exist.
func TestDocumentedCommands(t *testing.T) {
	files := []string{"../../../README.md", "../../../CONTRIBUTING.md", "../../../charts/scute/README.md"}
	err := filepath.WalkDir("../../../docs", func(path string, _ fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); ext == ".md" || ext == ".yaml" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandLines(string(text), filepath.Ext(file)) {
			seen++
			if err := parses(line); err != nil {
				t.Errorf("%s: %s: %v", file, line, err)
			}
		}
	}
	if seen < 100 {
		t.Errorf("found %d scutectl lines in the documentation, want at least 100: does the expression still match?", seen)
	}
}

// TestExamplesOfTheHelp checks that the commands and flags in the examples of the help exist.
func TestExamplesOfTheHelp(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
				if err := parses(line); err != nil {
					t.Errorf("%s --help: %s: %v", cmd.CommandPath(), line, err)
				}
			}
		}
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit(newCmd(cli.System("scutectl", "test"), Options{}, new(bool)))
}

// commandLines returns the scutectl lines of a page, or of the comments in an example.
func commandLines(text, ext string) (lines []string) {
	text = strings.ReplaceAll(text, "kubectl scute ", "scutectl ")
	if ext == ".yaml" {
		for line := range strings.Lines(text) {
			for _, part := range strings.Split(line, ";") {
				if _, command, ok := strings.Cut(part, "scutectl "); ok && strings.HasPrefix(line, "#") {
					lines = append(lines, "scutectl "+strings.TrimSpace(command))
				}
			}
		}
		return lines
	}
	for _, block := range documentedBlock.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
			if strings.HasPrefix(line, "scutectl ") {
				lines = append(lines, line)
			}
		}
	}
	for _, inline := range documentedInline.FindAllStringSubmatch(documentedBlock.ReplaceAllString(text, ""), -1) {
		lines = append(lines, strings.Join(strings.Fields(inline[1]), " "))
	}
	return lines
}

// parses resolves the command of a line and parses its flags.
func parses(line string) error {
	var args []string
	for _, w := range word.FindAllString(end.ReplaceAllString(line, ""), -1)[1:] {
		args = append(args, strings.Trim(w, `'"`))
	}
	root := newCmd(cli.System("scutectl", "test"), Options{}, new(bool))
	cmd, rest, err := root.Find(withNoun(root, args))
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil && !errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if cmd.HasSubCommands() && len(cmd.Flags().Args()) > 0 {
		return cobra.NoArgs(cmd, cmd.Flags().Args())
	}
	return nil
}
