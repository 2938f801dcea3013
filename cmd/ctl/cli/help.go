package cli

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// WrapHelp wraps the help of a command and its subcommands to the width of a terminal.
func (e *Env) WrapHelp(cmd *cobra.Command) {
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		width, _, terminal := e.Size(e.Out)
		if !terminal {
			help(cmd, args)
			return
		}
		var whole bytes.Buffer
		cmd.SetOut(&whole)
		help(cmd, args)
		cmd.SetOut(e.Out)
		cmd.Print(wrapHelp(whole.String(), width))
	})
}

var (
	// sectionPattern matches the title of a section of the help: "Flags:".
	sectionPattern = regexp.MustCompile(`^[A-Z][A-Za-z ]*:$`)
	// descriptionPattern matches the name of an option or a command, before its description.
	descriptionPattern = regexp.MustCompile(`^ +\S+( \S+)* {2,}`)
)

const examples = "Examples:"

// wrapHelp wraps long lines: a paragraph as one text, and a description in its column. Examples, and lines that begin with a tab, are not wrapped,
// because users paste them.
func wrapHelp(help string, width int) string {
	var out, paragraph []string
	flush := func() {
		wrapped := paragraph
		for _, line := range paragraph {
			if Width(line) > width {
				wrapped = Wrap(strings.Join(paragraph, " "), width)
				break
			}
		}
		out, paragraph = append(out, wrapped...), nil
	}
	part := ""
	for line := range strings.SplitSeq(help, "\n") {
		if line != "" && line[0] != ' ' && line[0] != '\t' && !sectionPattern.MatchString(line) {
			paragraph = append(paragraph, line)
			continue
		}
		flush()
		switch name := descriptionPattern.FindString(line); {
		case sectionPattern.MatchString(line):
			part = line
			out = append(out, line)
		case part == examples || strings.HasPrefix(line, "\t") || Width(line) <= width:
			out = append(out, line)
		case name == "":
			out = append(out, hangingIndent(line[:len(line)-len(strings.TrimLeft(line, " "))], "    ", line, width)...)
		default:
			out = append(out, hangingIndent(name, strings.Repeat(" ", len(name)), line[len(name):], width)...)
		}
	}
	flush()
	return strings.Join(out, "\n")
}

const (
	narrow   = 24         // minimum width of a description beside a name
	indented = "        " // indentation of a description below a name
)

// hangingIndent returns first with rest wrapped beside it, or below it if there is not enough space.
func hangingIndent(first, indent, rest string, width int) (out []string) {
	if width-len(indent) < narrow {
		out, first, indent = append(out, strings.TrimRight(first, " ")), indented, indented
	}
	for i, part := range Wrap(strings.TrimSpace(rest), max(width-len(indent), narrow)) {
		if i > 0 {
			first = indent
		}
		out = append(out, first+part)
	}
	return out
}
