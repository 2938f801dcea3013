package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scute.dev/cmd/ctl/app"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/internal/earlier"
)

// scutectl runs a command line and returns its output.
func scutectl(t *testing.T, exit int, args ...string) string {
	t.Helper()
	var out, said bytes.Buffer
	env := cli.System("scutectl", "test")
	env.Out, env.Err = &out, &said
	if got := app.Run(t.Context(), env, args); got != exit {
		t.Fatalf("scutectl %s: exit code %d, want %d: %s", strings.Join(args, " "), got, exit, said.String())
	}
	return out.String()
}

// saysMore removes from the state what this version adds to that of an earlier one: an addition to the message of a
// move, its advice, the clusters of a move of all, and the number of the question of a task.
func saysMore(was, is earlier.State) {
	before, now := status(was), status(is)
	message, _ := before["message"].(string)
	if said, _ := now["message"].(string); message != "" && strings.HasPrefix(said, message+"; ") {
		now["message"] = message
	}
	if before != nil && before["next"] == nil {
		delete(now, "next")
	}
	delete(now, "clusters")
	run, _ := is["run"].(map[string]any)
	tasks, _ := run["tasks"].([]any)
	for _, task := range tasks {
		delete(task.(map[string]any), "question")
	}
}

func status(s earlier.State) map[string]any {
	move, _ := s["move"].(map[string]any)
	status, _ := move["status"].(map[string]any)
	return status
}

// TestLogOfAnEarlierVersion checks that the log of an earlier version is shown unchanged, that its seal is valid, and
// that its runs and its seal can be continued.
func TestLogOfAnEarlierVersion(t *testing.T) {
	log, kept := earlier.Extract(t, "../..")
	verify := []string{"audit", "verify", "--log", log, "--key", filepath.Join(kept, "key"), "--checkpoint", filepath.Join(kept, "checkpoints")}
	scutectl(t, 0, verify...)
	for _, was := range earlier.States(t, kept) {
		var is earlier.State
		of := was["aggregate"].(string)
		if err := json.Unmarshal([]byte(scutectl(t, 0, "log", "replay", "--log", log, "--aggregate", of, "-o", "json")), &is); err != nil {
			t.Fatal(err)
		}
		delete(was, "sha256") // states have more fields now
		delete(is, "sha256")
		saysMore(was, is)
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("%s (-was +is):\n%s", of, diff)
		}
	}

	t.Chdir(t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if err := os.WriteFile("go", nil, 0o600); err != nil { // the commands of the runs wait for it
		t.Fatal(err)
	}
	for _, run := range []struct {
		name, phase    string
		task, decision string
		exit           int
	}{
		{"requested", "Succeeded", "", "", 0},
		{"suspended", "Succeeded", "", "", 0},
		{"killed", "Succeeded", "", "", 0},
		{"aborted", "Succeeded", "", "", 0},
		{"paused", "Degraded", "check", "ignore", cli.ExitDegraded},
		{"partly", "Degraded", "check", "ignore", cli.ExitDegraded},
		{"approval", "Succeeded", "ask", "succeed", 0},
		{"rolling-back", "RolledBack", "", "", 1},
		{"rollback-failed", "RolledBack", "make", "retry-undo", 1},
	} {
		where := []string{run.name, "-n", "fleet", "--local", "--log", log}
		if run.decision != "" {
			scutectl(t, 0, append([]string{"decide", "run", "--task", run.task, "--action", run.decision, "--reason", "test"}, where...)...)
		}
		scutectl(t, run.exit, append([]string{"resume", "run", "--trust-folder"}, where...)...)
		if phase := scutectl(t, 0, append([]string{"get", "run", "-o", "jsonpath={.phase}"}, where...)...); phase != run.phase {
			t.Errorf("phase of run %s = %s, want %s", run.name, phase, run.phase)
		}
	}

	if out := scutectl(t, 0, verify...); !strings.Contains(out, "after the checkpoint") {
		t.Errorf("no event was appended: %s", out)
	}
	if err := sealLog(t.Context(), []string{log, kept}); err != nil {
		t.Fatal(err)
	}
	if out := scutectl(t, 0, verify...); strings.Contains(out, "after the checkpoint") {
		t.Errorf("the log was not sealed again: %s", out)
	}
}
