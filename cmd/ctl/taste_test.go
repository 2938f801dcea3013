package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTaste runs the lines of the README's first taste as a user types them. The run is killed, fails, and is
// completed, and its first task must run once.
func TestTaste(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile("(?s)## A first taste\n.*?```sh\n.*?```\n.*?```sh\n(.*?)```\n").FindSubmatch(readme)
	if lines == nil {
		t.Fatal("the README has no section \"A first taste\" with a block that builds and a block that runs")
	}
	examples, err := filepath.Abs("../../docs/examples")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(examples, filepath.Join(folder, "docs", "examples")); err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-c", string(lines[1])) // testscript.Main has put scutectl on the path
	shell.Dir = folder
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	said := string(out)
	for _, want := range []string{"smoke-test  failed", "Finished tasks are skipped", "run default/kill/1: Succeeded"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
	backups, err := os.ReadFile(filepath.Join(folder, ".scute", "backups"))
	if err != nil || string(backups) != "taken\n" {
		t.Errorf("the backup was taken %d times (%v)\n%s", strings.Count(string(backups), "\n"), err, said)
	}
}
