package local

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const removes = `
apiVersion: scute.dev/v1alpha1
kind: WorkflowRun
metadata: {name: story}
spec:
  tasks:
  - {name: clean, kind: Exec, with: {command: [rm, -rf, log]}}
  - {name: next, kind: Exec, needs: [clean], with: {command: [touch, next]}}
`

// TestARunWhoseLogIsRemovedFails checks that a run whose log is removed while it runs fails with an error about this,
// and begins nothing more.
func TestARunWhoseLogIsRemovedFails(t *testing.T) {
	w := newWorld(t, removes)
	cmd := exec.Command(plainCtl(t), "run", "-f", "story.yaml", "--local", "--log", "log")
	cmd.Dir = w.dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("%v, want exit status 1\n%s", err, out)
	}
	contains(t, string(out), "was removed or replaced while the log was open: later events are not recorded")
	if _, err := os.Stat(filepath.Join(w.dir, "next")); err == nil {
		t.Error("a task began although it could not be recorded")
	}
}
