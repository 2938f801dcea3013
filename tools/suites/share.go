package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// whole is the share that has everything.
const whole = "all"

// testFunction is the first line of a test.
var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)

// part is what a share of a run has of a suite.
type part struct {
	arguments []string // which choose the tests
	rotation  string   // the share of the long matrices that these take
	note      string
}

// part is everything unless the suite is cut into shares. The shares of a suite take turns, and so
// do, each time that its turn comes, the shares of the matrices of its tests.
func (s *suite) part(share string) (part, error) {
	if s.shares < 2 || share == "" || share == whole {
		return part{rotation: share}, nil
	}
	n, err := strconv.Atoi(share)
	if err != nil || n < 1 {
		return part{}, fmt.Errorf("ROTATION is %q: it must be a number from 1 on, or %s", share, whole)
	}
	all, err := tests(filepath.Join(s.dir, s.name))
	if err != nil {
		return part{}, fmt.Errorf("listing its tests: %w", err)
	}
	var taken []string
	for i, name := range all {
		if i%s.shares == n%s.shares {
			taken = append(taken, name)
		}
	}
	if len(taken) == 0 {
		return part{}, fmt.Errorf("share %s of %d has none of its %d tests", share, s.shares, len(all))
	}
	return part{
		arguments: []string{"-run", "^(" + strings.Join(taken, "|") + ")$"},
		rotation:  strconv.Itoa(n/s.shares + 1),
		note:      fmt.Sprintf("rotation %d of %d: took %s; `make test-full` runs all", n%s.shares+1, s.shares, strings.Join(taken, ", ")),
	}, nil
}

// tests returns the names of a package's tests, by file.
func tests(dir string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go")) // sorted
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, match := range testFunction.FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	return names, nil
}
