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
	"scute.dev/test/assets"
)

const slow = `
apiVersion: scute.dev/v1alpha1
kind: WorkflowRun
metadata: {name: story}
spec:
  tasks:
  - {name: first, kind: Exec, with: {command: [sh, -c, 'echo "$SCUTE_KEY" >> ran']}}
  - name: second
    kind: Exec
    needs: [first]
    with: {command: [sh, -c, 'trap "echo TERM > ended; exit 9" TERM; echo $$ > pid; while test ! -e ready; do sleep 0.05; done']}
`

// TestAnInterruptedRunIsResumed checks that Ctrl-C, SIGTERM and SIGHUP stop the running commands with SIGTERM and then
// the process, with status 130 and a message with the command to continue. The same command resumes the run.
func TestAnInterruptedRunIsResumed(t *testing.T) {
	program := plainCtl(t)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			w := newWorld(t, slow)
			cmd := exec.Command(program, "run", "-f", "story.yaml", "--local")
			cmd.Dir = w.dir
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			check(t, cmd.Start())
			w.second(t, cmd)
			check(t, cmd.Process.Signal(signal))
			if signal == syscall.SIGHUP { // as a closed terminal does
				check(t, cmd.Process.Signal(signal))
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
				t.Fatalf("%v, want exit status 130\n%s", err, out.String())
			}
			contains(t, out.String(), "interrupted: run default/story/1 can be resumed: `scutectl resume run story --local`")
			if said := w.lines(t, "ended"); len(said) != 1 || said[0] != "TERM" {
				t.Errorf("the command received %q, want TERM", said)
			}
			check(t, os.WriteFile(filepath.Join(w.dir, "ready"), nil, 0o644))
			w.run(t, "")
			if r := w.report(t); r.Phase != v1alpha1.RunSucceeded || len(w.lines(t, "ran")) != 1 {
				t.Errorf("report = %+v, want a successful run that ran once", r)
			}
		})
	}
}

// TestAClosedPipeDoesNotEndARun checks that a run continues when a reader of its output, such as head, exits.
func TestAClosedPipeDoesNotEndARun(t *testing.T) {
	w := newWorld(t, slow)
	cmd := exec.Command(plainCtl(t), "run", "-f", "story.yaml", "--local", "-o", "json")
	cmd.Dir = w.dir
	reader, writer, err := os.Pipe()
	check(t, err)
	cmd.Stdout, cmd.Stderr = writer, writer
	check(t, cmd.Start())
	check(t, writer.Close())
	w.second(t, cmd)
	check(t, reader.Close())
	check(t, os.WriteFile(filepath.Join(w.dir, "ready"), nil, 0o644))
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if r := w.report(t); r.Phase != v1alpha1.RunSucceeded {
		t.Errorf("report = %+v, want a successful run", r)
	}
}

// second waits until the second task has begun.
func (w *world) second(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); len(w.lines(t, "pid")) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			t.Fatal("the second task did not start")
		}
	}
}

// plainCtl returns the path of the real scutectl, because faultctl does not handle signals.
func plainCtl(t *testing.T) string {
	t.Helper()
	bin, err := assets.Build(t.Context(), os.Stderr, assets.Ctl)
	check(t, err)
	return filepath.Join(bin, "scutectl")
}
