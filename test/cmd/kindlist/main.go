package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"scute.dev/workflow/tasks"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: kindlist SOURCE PAGE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "kindlist:", err)
		os.Exit(1)
	}
}

func run(source, page string) error {
	registered := tasks.All()
	if err := rewrite(source, "// Kind of the task: ", "\n", list(registered)); err != nil {
		return err
	}
	return rewrite(page, "| kind | does | its inverse |\n|---|---|---|\n", "\n\n", table(registered))
}

// list returns the kinds in a sentence.
func list(registered []tasks.Registration) string {
	var names []string
	for _, r := range registered {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last] + "."
}

// table returns a table with a row for each kind.
func table(registered []tasks.Registration) string {
	var rows []string
	for _, r := range registered {
		rows = append(rows, fmt.Sprintf("| [%s](#%s) | %s | %s |", r.Name, strings.ToLower(r.Name), r.Description, r.Inverse))
	}
	return strings.Join(rows, "\n")
}

// rewrite replaces a text in a file.
func rewrite(path, mark, end, text string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	written, err := fill(content, mark, end, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if bytes.Equal(content, written) {
		return nil
	}
	return os.WriteFile(path, written, 0o644) //nolint:gosec // a source file, which everybody may read
}

// fill replaces the text between mark, which must occur once, and the next end.
func fill(content []byte, mark, end, text string) ([]byte, error) {
	if n := bytes.Count(content, []byte(mark)); n != 1 {
		return nil, fmt.Errorf("%q is there %d times, not once", mark, n)
	}
	before, rest, _ := bytes.Cut(content, []byte(mark))
	_, after, found := bytes.Cut(rest, []byte(end))
	if !found {
		return nil, fmt.Errorf("there is no %q after %q", end, mark)
	}
	return slices.Concat(before, []byte(mark+text+end), after), nil
}
