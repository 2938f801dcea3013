package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Test, Output string
	Elapsed              float64
}

// testOutput takes the events of one package, and writes their text to a log.
type testOutput struct {
	log   io.Writer
	rest  []byte
	tests []*test
	// notes are the lines in which a test says which share of its cases it took.
	notes []string
	other strings.Builder // not of a test: of the compiler, of TestMain, of the runtime
}

type test struct {
	name    string
	output  strings.Builder
	ended   bool
	failed  bool
	elapsed float64
}

// Write takes whole and partial lines.
func (o *testOutput) Write(p []byte) (int, error) {
	o.rest = append(o.rest, p...)
	for {
		line, rest, whole := bytes.Cut(o.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		o.rest = rest
		o.line(line)
	}
}

func (o *testOutput) close() {
	if len(o.rest) > 0 {
		o.line(o.rest)
		o.rest = nil
	}
}

func (o *testOutput) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		e = event{Action: "output", Output: string(line) + "\n"}
	}
	if e.Output != "" {
		_, _ = io.WriteString(o.log, e.Output) // a log that cannot be written must not fail the suite
	}
	if e.Test == "" {
		if e.Output != "PASS\n" && e.Output != "FAIL\n" {
			o.other.WriteString(e.Output)
		}
		return
	}
	t := o.test(e.Test)
	switch e.Action {
	case "output":
		o.say(t, e.Output)
	case "pass", "skip", "fail":
		t.ended, t.failed, t.elapsed = true, e.Action == "fail", e.Elapsed
	}
}

func (o *testOutput) test(name string) *test {
	i := slices.IndexFunc(o.tests, func(t *test) bool { return t.name == name })
	if i < 0 {
		i = len(o.tests)
		o.tests = append(o.tests, &test{name: name})
	}
	return o.tests[i]
}

func (o *testOutput) say(t *test, text string) {
	trimmed := strings.TrimSpace(text)
	for _, frame := range []string{"=== ", "--- "} {
		if strings.HasPrefix(trimmed, frame) {
			return
		}
	}
	if i := strings.Index(text, ": rotation "); i >= 0 {
		o.notes = append(o.notes, strings.TrimSpace(t.name+text[i:]))
	}
	t.output.WriteString(text)
}

// failures are the tests that failed or did not end, with what they wrote. A test whose subtest
// failed is left out where it wrote nothing itself.
func (o *testOutput) failures() string {
	var b strings.Builder
	for _, t := range o.tests {
		if t.ended && !t.failed || t.output.Len() == 0 {
			continue
		}
		state := fmt.Sprintf("%.1f s", t.elapsed)
		if !t.ended {
			state = "did not end"
		}
		fmt.Fprintf(&b, "--- FAIL: %s (%s)\n%s", t.name, state, t.output.String())
	}
	b.WriteString(o.other.String())
	return b.String()
}
