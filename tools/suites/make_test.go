package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMakeNeedsChromium checks that `make test` without a browser fails before it builds anything,
// and says what to install.
func TestMakeNeedsChromium(t *testing.T) {
	path := t.TempDir()
	for _, program := range []string{"bash", "make", "git", "go"} {
		at, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at, filepath.Join(path, program)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "make", "-C", filepath.Join("..", ".."), "test", "SUITE=", "BIN="+t.TempDir())
	cmd.Env = append(os.Environ(), "PATH="+path, "MAKEFLAGS=", "MFLAGS=")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "apt-get install chromium") {
		t.Errorf("make test without Chromium: %v\n%s", err, out)
	}
}
