package management

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// script replaces the program kind: it keeps the names of its clusters in a file. The tests only check how it is
// called; it starts no API server.
const script = `#!/bin/sh
echo "$@" >> "$KIND_CALLS"
case "$1 $2" in
"get clusters") cat "$KIND_CLUSTERS" 2>/dev/null || true ;;
"create cluster") echo "$4" >> "$KIND_CLUSTERS"; echo "no room for nodes" >&2; exit 1 ;;
"delete cluster") rm -f "$KIND_CLUSTERS" ;;
esac
`

func attempt(t *testing.T) *provider.Context {
	t.Helper()
	call := &task.Call{Run: "run", Record: func(context.Context, json.RawMessage, bool) error { return nil }}
	c := provider.NewContext(t.Context(), call, &access.Clusters{Local: true})
	return &c
}

func TestKindIsMissing(t *testing.T) {
	k := &Kind{Program: filepath.Join(t.TempDir(), "kind"), folder: t.TempDir()}
	_, err := k.Create(attempt(t))
	if err == nil || !task.IsFinal(err) || !strings.Contains(err.Error(), "install kind") {
		t.Errorf("Create without the program = %v, want a final error with advice", err)
	}
}

// TestKindFails checks that a cluster that is incomplete after a crash or a failure is deleted and created again, and
// that deletion is idempotent.
func TestKindFails(t *testing.T) {
	dir := t.TempDir()
	program, calls := filepath.Join(dir, "kind"), filepath.Join(dir, "calls")
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KIND_CALLS", calls)
	t.Setenv("KIND_CLUSTERS", filepath.Join(dir, "clusters"))
	k := &Kind{Program: program, Image: "kindest/node:v1", folder: filepath.Join(dir, "state")}
	for range 2 {
		if _, err := k.Create(attempt(t)); err == nil || !strings.Contains(err.Error(), "no room for nodes") {
			t.Fatalf("Create = %v, want the error of kind", err)
		}
	}
	for range 2 {
		if err := k.Delete(attempt(t)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	var verbs []string
	for line := range strings.Lines(string(text)) {
		verbs = append(verbs, strings.Join(strings.Fields(line)[:1], ""))
	}
	if got := strings.Join(verbs, " "); got != "get create get export delete create get delete get" {
		t.Errorf("calls of kind = %s", got)
	}
	if !strings.Contains(string(text), "--image kindest/node:v1") || !strings.Contains(string(text), "--name "+clusterName("run")) {
		t.Errorf("arguments of kind = %s", text)
	}
}

// TestKindThatAnsweredIsKept checks that a cluster that was available before is not deleted because it is unavailable
// now: it may manage other clusters by then.
func TestKindThatAnsweredIsKept(t *testing.T) {
	dir := t.TempDir()
	program, clusters := filepath.Join(dir, "kind"), filepath.Join(dir, "clusters")
	for path, text := range map[string]string{program: script, clusters: clusterName("run") + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KIND_CALLS", filepath.Join(dir, "calls"))
	t.Setenv("KIND_CLUSTERS", clusters)
	k, c := &Kind{Program: program, folder: filepath.Join(dir, "state")}, attempt(t)
	if err := recordReady(c, clusterName("run")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := k.Create(c); err == nil || !strings.Contains(err.Error(), "may manage clusters") {
			t.Errorf("Create = %v, want an error", err)
		}
	}
	if _, err := os.Stat(clusters); err != nil {
		t.Errorf("the cluster was deleted: %v", err)
	}
}
