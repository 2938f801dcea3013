package remediator

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRulesAreDocumented checks that docs/remediation.md describes each rule.
func TestRulesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/remediation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Rules\n")
	table, _, _ = strings.Cut(table, "\n## ")
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	rules := make(map[string]bool)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// A rule is the first argument of wait, a word among those of waitForHuman, freeze and
		// cannotRemediate, the value of a field, or a constant.
		for _, m := range regexp.MustCompile(`(?s)(?:\bwait\(|\b[rR]ule\w* *[:=] *|\b(?:waitForHuman|freeze|cannotRemediate)\([^\n]*?,\s*)"([a-z0-9-]+)"`).FindAllStringSubmatch(string(source), -1) {
			rules[m[1]] = true
		}
	}
	if len(rules) < 50 {
		t.Fatalf("got %d rules, want at least 50: does the expression still match?", len(rules))
	}
	for rule := range rules {
		if !strings.Contains(table, "`"+rule+"`") {
			t.Errorf("the table of rules in docs/remediation.md has no `%s`", rule)
		}
	}
}
