package app

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
)

var (
	// quoted matches a command in backquotes in a message, bare one that is not in backquotes.
	quoted = regexp.MustCompile("`(?:scutectl|kubectl scute) ([^`]*)`")
	bare   = regexp.MustCompile(`scutectl ([a-z]+)`)
	// format matches a formatting verb.
	format = regexp.MustCompile(`%[-+# 0]*[0-9.]*[a-z]`)
)

// TestHints checks every command that scute's code names in a message, a status or an event: it parses, its arguments
// are valid, and a shell can run it as it is.
func TestHints(t *testing.T) {
	h := &hints{t: t, root: newCmd(cli.System("scutectl", "test"), Options{}, new(bool)), set: token.NewFileSet()}
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if slices.Contains([]string{"test", "testdata", "tools", "bin", ".git", "docs"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(h.set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		h.ctl = strings.HasPrefix(filepath.ToSlash(path), "../../../cmd/ctl/")
		h.nouns = nil
		if noun := filepath.Base(filepath.Dir(path)); slices.Contains([]string{"move", "run", "remediation"}, noun) {
			h.nouns = []string{noun}
		}
		ast.Inspect(file, h.visit)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if h.messages < 10 || h.calls < 30 {
		t.Errorf("found %d commands in messages and %d composed commands, want at least 10 and 30: are they still found?", h.messages, h.calls)
	}
}

// hints checks the commands in the code.
type hints struct {
	t               *testing.T
	root            *cobra.Command
	set             *token.FileSet
	ctl             bool     // the file belongs to scutectl
	nouns           []string // the nouns of the package; nil for any
	messages, calls int
}

func (h *hints) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		h.call(n)
	case *ast.BinaryExpr, *ast.BasicLit:
		text, isText := foldText(n)
		if !isText {
			return true
		}
		h.message(n.Pos(), text)
		for _, call := range callsIn(n) {
			ast.Inspect(call, h.visit)
		}
		return false
	}
	return true
}

// message checks the commands in a text. Outside of scutectl, all of them must be in backquotes.
func (h *hints) message(at token.Pos, text string) {
	text = format.ReplaceAllString(text, "x")
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		h.messages++
		h.check(at, m[1])
	}
	for _, m := range bare.FindAllStringSubmatch(quoted.ReplaceAllString(text, ""), -1) {
		if cmd, _, err := h.root.Find(m[1:]); err == nil && cmd != h.root && !h.ctl {
			h.t.Errorf("%s: put `scutectl %s` into backquotes, with its arguments", h.set.Position(at), m[1])
		}
	}
}

// call checks a command that a function composes from a verb, a noun, a name and options.
func (h *hints) call(call *ast.CallExpr) {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = f.Sel.Name
	case *ast.Ident:
		name = f.Name
	}
	if !slices.Contains([]string{"Hint", "hint", "line"}, name) {
		return
	}
	var words []string
	for _, arg := range call.Args {
		word, _ := foldText(arg)
		if _, text := arg.(*ast.BasicLit); text && word == "" { // the namespace of Kit.Hint
			continue
		}
		if cmd, _, err := h.root.Find([]string{word}); len(words) > 0 || err == nil && cmd != h.root {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return
	}
	h.calls++
	if name == "Hint" && len(words) > 2 && words[1] == "x" && words[2] == "x" { // a noun of a table, and a name
		words = append(words[:1], words[2:]...)
	}
	switch {
	case name == "Hint" && len(words) > 2 && words[1] == "x" && words[2] == "x": // for one object of a noun in a variable
		h.ofEach(call.Pos(), words[0], words[3:])
	case name == "line", name == "Hint" && len(words) > 1 && words[1] == "x": // for one object, whose noun depends on the package
		h.ofEach(call.Pos(), words[0], words[2:])
	case name == "hint":
		h.ofEach(call.Pos(), words[0], words[1:])
	default:
		h.checkWords(call.Pos(), words)
	}
}

// ofEach checks a verb with each noun that it can apply to.
func (h *hints) ofEach(at token.Pos, verb string, options []string) {
	cmd, _, _ := h.root.Find([]string{verb})
	for _, noun := range cmd.Commands() {
		if h.nouns == nil && noun.Name() != "machine" || slices.Contains(h.nouns, noun.Name()) {
			h.checkWords(at, append([]string{verb, noun.Name(), "x"}, options...))
		}
	}
}

func (h *hints) check(at token.Pos, line string) {
	bareLine := regexp.MustCompile(`'[^']*'`).ReplaceAllString(line, "")
	if strings.ContainsAny(bareLine, "|&;<>()$*\"") {
		h.t.Errorf("%s: scutectl %s: a shell takes it for something else", h.set.Position(at), line)
	}
	var words []string
	for _, w := range word.FindAllString(line, -1) {
		words = append(words, strings.Trim(w, "'"))
	}
	h.checkWords(at, words)
}

func (h *hints) checkWords(at token.Pos, words []string) {
	h.t.Helper()
	if err := checkCommandLine(words); err != nil {
		h.t.Errorf("%s: scutectl %s: %v", h.set.Position(at), strings.Join(words, " "), err)
	}
}

// checkCommandLine checks a command line without running it.
func checkCommandLine(words []string) error {
	root := newCmd(cli.System("scutectl", "test"), Options{}, new(bool))
	cmd, rest, err := root.Find(withNoun(root, words))
	if err != nil {
		return err
	}
	if cmd.HasSubCommands() && cmd.Name() != "doctor" { // doctor can run without a subcommand
		return fmt.Errorf("%s is not a whole command", cmd.CommandPath())
	}
	for i := 1; i < len(rest); i++ { // x is a placeholder, so use a number where one is needed
		if f := cmd.Flags().Lookup(strings.TrimPrefix(rest[i-1], "--")); rest[i] == "x" && f != nil && f.Value.Type() == "int" {
			rest[i] = "1"
		}
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// foldText returns a text that is composed from literals, with an x for each other operand.
func foldText(n ast.Node) (text string, isText bool) {
	switch n := n.(type) {
	case *ast.BasicLit:
		if n.Kind != token.STRING {
			return "x", false
		}
		text, err := strconv.Unquote(n.Value)
		return text, err == nil
	case *ast.ParenExpr:
		return foldText(n.X)
	case *ast.BinaryExpr:
		if n.Op != token.ADD {
			return "x", false
		}
		left, one := foldText(n.X)
		right, other := foldText(n.Y)
		return left + right, one || other
	}
	return "x", false
}

// callsIn returns the calls in a composed text.
func callsIn(n ast.Node) (calls []*ast.CallExpr) {
	if b, ok := n.(*ast.BinaryExpr); ok {
		for _, side := range []ast.Expr{b.X, b.Y} {
			if call, ok := side.(*ast.CallExpr); ok {
				calls = append(calls, call)
			}
			calls = append(calls, callsIn(side)...)
		}
	}
	return calls
}
