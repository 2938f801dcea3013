package api

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
)

// TestEditedManifest checks that `run -f` refuses a manifest that was edited after its run began, and prints the plan
// with which it can be adopted. The API server compares the two with a dry run of an update.
func TestEditedManifest(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	in := install(ctx, t)
	serve(ctx, t, definitions(t)...)
	dir, err := in.NewLogDir()
	harness.Must(t, err)
	listen := ports.AddressForTest(t)
	harness.Daemon(t, in, scuted.DaemonOptions{LogDir: dir, Listen: listen})
	file := filepath.Join(t.TempDir(), "run.yaml")
	run := func(message string) (code int, said string) {
		t.Helper()
		manifest := "apiVersion: scute.dev/v1alpha1\nkind: WorkflowRun\nmetadata: {name: edited, namespace: good}\n" +
			"spec: {tasks: [{name: a, kind: Approve, with: {message: '" + message + "'}}]}\n"
		harness.Must(t, os.WriteFile(file, []byte(manifest), 0o600))
		out, err := in.Scutectl(ctx, "run", "-f", file, "--nats", "nats://"+listen).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatalf("scutectl = %v, want an exit status:\n%s", err, out)
		}
		return exit.ExitCode(), string(out)
	}
	const paused, refused, waits = 3, 2, 1
	for _, step := range []struct {
		message string
		code    int
		says    string
	}{
		{"go on?", paused, "Paused"},
		{"really?", refused, "migrate"},
		{"go on?", waits, "a waits for an operator"}, // the message with which the run began
	} {
		if code, said := run(step.message); code != step.code || !strings.Contains(said, step.says) {
			t.Errorf("message %q: exit status %d, want %d and %q:\n%s", step.message, code, step.code, step.says, said)
		}
	}
}
