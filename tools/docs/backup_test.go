package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// copied matches a command about a backup of the log with its folder, in a shell and as the list of a container.
var copied = regexp.MustCompile(`\b(?:backup|restore),? log,? (/[^\s,\]` + "`" + `]+)`)

// TestTheLogIsRestoredFromWhereTheChartKeepsIt: who follows the runbook in an outage finds the backup that the CronJob of the chart made.
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
			t.Errorf("docs/operators.md says %q; the chart's backups are in %s", strings.TrimSpace(command[0]), folder[1])
		}
	}
	if len(found) < 5 {
		t.Errorf("docs/operators.md has %d commands about backups of the log: does the expression still find them?", len(found))
	}
}
