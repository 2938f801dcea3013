package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"scute.dev/workflow/tasks"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kindlist FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "kindlist:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	written, err := fill(source, slices.Sorted(maps.Keys(tasks.Kinds(tasks.Options{}))))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if bytes.Equal(source, written) {
		return nil
	}
	return os.WriteFile(path, written, 0o644) //nolint:gosec // a source file, which everybody may read
}

// mark begins the one comment line that holds the list.
const mark = "// Kind of the task: "

// fill puts the kinds behind the mark.
func fill(source []byte, kinds []string) ([]byte, error) {
	if n := bytes.Count(source, []byte(mark)); n != 1 {
		return nil, fmt.Errorf("%q is there %d times, not once", mark, n)
	}
	before, rest, _ := bytes.Cut(source, []byte(mark))
	_, after, _ := bytes.Cut(rest, []byte("\n"))
	last := len(kinds) - 1
	list := strings.Join(kinds[:last], ", ") + " or " + kinds[last]
	return slices.Concat(before, []byte(mark+list+".\n"), after), nil
}
