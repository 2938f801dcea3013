package local

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
)

const slow = `
apiVersion: scute.dev/v1alpha1
kind: Workflow
metadata: {name: story}
spec:
  tasks:
  - {name: first, kind: Exec, with: {command: [sh, -c, 'echo "$SCUTE_KEY" >> ran']}}
  - {name: second, kind: Exec, needs: [first], with: {command: [sh, -c, 'echo $$ > pid; test -e ready || exec sleep 600']}}
`

// Ctrl-C ends the commands that are in flight and the process, with status 130 and the way to go on; the same command
// resumes.
func TestAnInterruptedRunIsResumed(t *testing.T) {
	w := newWorld(t, slow)
	cmd := exec.Command(plainCtl(t), "run", "-f", "story.yaml", "--local")
	cmd.Dir = w.dir
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	check(t, cmd.Start())
	for deadline := time.Now().Add(30 * time.Second); len(w.lines(t, "pid")) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			t.Fatal("the second task did not start")
		}
	}
	check(t, cmd.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Fatalf("%v\n%s", err, out.String())
	}
	contains(t, out.String(), "interrupted: run default/story/1 can be resumed: `scutectl resume run story --local`")
	if err := exec.Command("kill", "-0", w.lines(t, "pid")[0]).Run(); err == nil {
		t.Error("the command still runs")
	}
	check(t, os.WriteFile(filepath.Join(w.dir, "ready"), nil, 0o644))
	w.run(t, "")
	if r := w.report(t); r.Phase != v1alpha1.RunSucceeded || len(w.lines(t, "ran")) != 1 {
		t.Errorf("%+v", r)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		t.Error("it was killed")
	}
}

// plainCtl is scutectl itself: faultctl takes no signals.
func plainCtl(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scutectl")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/ctl")
	cmd.Dir, cmd.Stderr = "../..", os.Stderr
	check(t, cmd.Run())
	return path
}
