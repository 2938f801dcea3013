package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// suite is something that passes or fails.
type suite struct {
	name    string
	group   string
	dir     string
	command []string
	events  bool // it writes the events of `go test -json`
	story   bool // it tells for minutes what happens, and what was wrong at its end
	shares  int  // a share of a run has one of so many of its tests; 0 for all of them
}

// Groups of suites, which can be named like a suite.
const (
	groupChecks = "checks" // one at a time, in the order of their cost
	groupStack  = "stack"  // on the real stack, several at a time
	groupAlone  = "alone"  // one at a time, and chosen by name only
	// groupPromises has one test on the real stack for each promise of the README, several at a time.
	groupPromises = "promises"
)

// promises returns the suites of groupPromises: tests of the packages below test/ that show a promise whole.
func promises() []promise {
	return []promise{
		{"move", "e2e", "TestThereAndBack"}, // killed at any instant
		{"run", "local", "TestARunGetsToItsEndAlthoughEveryProcessIsKilled"},
		{"surge", "remediation", "TestPicture"},
		{"paused", "pause", "TestPause"},
		{"restored", "backup", "TestRestoreElsewhere"},
		{"rendered", "scuted", "TestRender"},
		{"page", "ui", "TestPagesOfSavedHistories"},
	}
}

type promise struct{ name, pkg, test string }

// long are the suites that begin first, or one of them would run alone at the end, and into how
// many shares their tests are cut.
func long() []suite {
	return []suite{
		{name: "e2e", shares: 6},
		{name: "remediation", shares: 4},
		{name: "backup", shares: 2},
		{name: "named", shares: 4},
		{name: "testbed", shares: 2},
		{name: "lifecycle", shares: 3},
		{name: "pause", shares: 2},
		{name: "ui", shares: 2},
		{name: "api", shares: 2},
		{name: "local", shares: 2},
	}
}

// catalog lists all suites, in the order in which they run.
func catalog(ctx context.Context, o *options) ([]suite, error) {
	target := func(group, name string, arguments ...string) suite {
		program := os.Getenv("MAKE")
		if program == "" {
			program = "make"
		}
		return suite{name: name, group: group, dir: o.root, command: append([]string{program, "--no-print-directory"}, arguments...)}
	}
	checks := []suite{
		target(groupChecks, "generated", "test-generated"),
		target(groupChecks, "lint", "lint"),
		target(groupChecks, "docs", "test-docs"),
		target(groupChecks, "chart", "test-chart"),
		target(groupChecks, "unit", "test-unit"),
		target(groupAlone, "build", "test-build"),
	}
	last := []suite{target(groupAlone, "demo", "demo"), target(groupAlone, "soak", "soak", "DURATION=5m")}
	for i := range last {
		last[i].story = true
	}
	packages, err := o.packages(ctx)
	if err != nil {
		return nil, err
	}
	all := checks
	for _, p := range promises() {
		s := o.stack(p.name, p.pkg)
		existing, err := tests(filepath.Join(s.dir, p.pkg))
		if err != nil {
			return nil, fmt.Errorf("listing the tests of %s: %w", p.pkg, err)
		}
		if !slices.Contains(existing, p.test) { // go test takes a name that matches nothing for a success
			return nil, fmt.Errorf("the promise %q names %s, and test/%s has no such test", p.name, p.test, p.pkg)
		}
		s.group, s.command = groupPromises, append(s.command, "-run", "^"+p.test+"$")
		all = append(all, s)
	}
	for _, name := range packages {
		s := o.stack(name, name)
		if i := place(name); i < len(long()) {
			s.shares = long()[i].shares
		}
		if slices.ContainsFunc(slices.Concat(checks, last), func(other suite) bool { return other.name == name }) {
			s.name = "test/" + name
		}
		all = append(all, s)
	}
	return append(all, last...), nil
}

// stack returns the suite of a package of test/.
func (o *options) stack(name, pkg string) suite {
	return suite{
		name: name, group: groupStack, dir: filepath.Join(o.root, "test"), events: true,
		command: []string{"go", "test", "-json", "-vet=off", "-count=1", "-timeout", o.timeout.String(), "./" + pkg},
	}
}

// place returns the index of a package of test/ among the long suites, or the number of long suites
// if it is not one.
func place(name string) int {
	if i := slices.IndexFunc(long(), func(s suite) bool { return s.name == name }); i >= 0 {
		return i
	}
	return len(long())
}

// packages returns the packages of the module test/ that have tests, the longest first.
func (o *options) packages(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")
	cmd.Dir, cmd.Stderr = filepath.Join(o.root, "test"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages of test/: %w", err)
	}
	var names []string
	for _, path := range strings.Fields(string(out)) {
		names = append(names, strings.TrimPrefix(path, "scute.dev/test/"))
	}
	slices.SortStableFunc(names, func(a, b string) int { return place(a) - place(b) })
	return names, nil
}

// choose keeps the suites that are named, themselves or by their group.
func choose(all []suite, names []string) ([]suite, error) {
	var chosen []suite
	for _, s := range all {
		if slices.Contains(names, s.name) || slices.Contains(names, s.group) && s.group != groupAlone {
			chosen = append(chosen, s)
		}
	}
	known := []string{groupChecks, groupPromises, groupStack}
	for _, s := range all {
		known = append(known, s.name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no suite %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no suite is named; there are %s", strings.Join(known, ", "))
	}
	return chosen, nil
}
