package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// copied matches a command for a backup of the log with its folder, in a shell or as the arguments of a container.
var copied = regexp.MustCompile(`\b(?:backup|restore),? log,? (/[^\s,\]` + "`" + `]+)`)

// TestTheLogIsRestoredFromWhereTheChartKeepsIt checks that the runbook uses the folder in which the chart's CronJob
// stores backups.
func TestTheLogIsRestoredFromWhereTheChartKeepsIt(t *testing.T) {
	chart, err := os.ReadFile(filepath.Join(root, "charts/scute/templates/backup.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	folder := regexp.MustCompile(`(?m)^ +- backup\n +- log\n +- (/\S+)$`).FindSubmatch(chart)
	if folder == nil {
		t.Fatal("the chart has no job that runs scutectl backup log with a folder")
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/operators.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := copied.FindAllStringSubmatch(string(page), -1)
	for _, command := range found {
		if command[1] != string(folder[1]) {
			t.Errorf("docs/operators.md has %q, but the chart's backups are in %s", strings.TrimSpace(command[0]), folder[1])
		}
	}
	if len(found) < 5 {
		t.Errorf("found %d commands for backups of the log in docs/operators.md, want at least 5: does the expression still match?", len(found))
	}
}
