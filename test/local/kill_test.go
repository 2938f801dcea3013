package local

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scute.dev/api/v1alpha1"
)

// story is a manifest. Every command writes a line with its key to the file ran: before its work, and "undo KEY" when
// it is undone. flaky fails at its first attempt. broken always fails, and a branch handles this. last fails
// permanently in the story that is rolled back.
const story = `
apiVersion: scute.dev/v1alpha1
kind: WorkflowRun
metadata: {name: story}
spec:
  failurePolicy: %s
  hooks:
    pre: [{name: look, kind: Exec, with: {command: [sh, -c, 'echo "$SCUTE_KEY" >> ran']}, undo: {command: [sh, -c, 'echo "undo $SCUTE_KEY" >> ran']}}]
    post: [{name: write, kind: Exec, with: {command: [sh, -c, 'echo "$SCUTE_KEY" >> ran']}}]
    onFailure: [{name: tell, kind: Exec, with: {command: [sh, -c, 'echo "$SCUTE_KEY" >> told']}}]
  tasks:
  - name: first
    kind: Exec
    with: {command: [sh, -c, 'echo "$SCUTE_KEY" >> ran; echo "{\"v\": 7}" > $SCUTE_OUTPUT']}
    before: [{name: check, kind: Exec, with: {command: [sh, -c, 'echo "$SCUTE_KEY" >> ran']}}]
    after: [{name: note, kind: Exec, with: {command: [sh, -c, 'echo "$SCUTE_KEY" >> ran']}}]
    undo: {command: [sh, -c, 'echo "undo $SCUTE_KEY" >> ran']}
  - name: flaky
    kind: Exec
    needs: [first]
    retry: {max: 2, delay: 10ms}
    with: {command: [sh, -c, 'echo "$SCUTE_KEY" >> ran; test "${tasks.first.output.v}" = 7 && test $SCUTE_ATTEMPT -gt 1']}
    undo: {command: [sh, -c, 'echo "undo $SCUTE_KEY" >> ran']}
  - {name: broken, kind: Exec, needs: [flaky], with: {command: [sh, -c, 'echo "$SCUTE_KEY" >> ran; exit 3']}}
  - {name: unused, kind: Exec, needs: [broken], with: {command: [sh, -c, 'echo "$SCUTE_KEY" >> ran']}}
  - {name: instead, kind: Exec, needs: [{task: broken, on: Failure}], with: {command: [sh, -c, 'echo "$SCUTE_KEY" >> ran']}, undo: {command: [sh, -c, 'echo "undo $SCUTE_KEY" >> ran']}}
  - {name: last, kind: Exec, needs: [{task: unused, optional: true}, {task: instead, optional: true}], with: {command: [sh, -c, 'echo "$SCUTE_KEY" >> ran; %s']}}
`

func TestAKillAtEveryCommitChangesNothingOfTheEnd(t *testing.T) {
	for _, c := range []struct {
		name, policy, last string
		phase              v1alpha1.RunPhase
	}{
		{"forward", "Abort", "true", v1alpha1.RunSucceeded},
		{"rolled back", "Rollback", "exit 9", v1alpha1.RunRolledBack},
	} {
		t.Run(c.name, func(t *testing.T) {
			manifest := fmt.Sprintf(story, c.policy, c.last)
			calm := newWorld(t, manifest)
			calm.run(t, "")
			want := calm.report(t)
			if want.Phase != c.phase {
				t.Fatalf("phase without kills = %s, want %s", want.Phase, c.phase)
			}
			for _, when := range []string{"before", "after"} {
				// The number of commits varies, because tasks may end at the same moment. Repeat until a run is not
				// killed.
				deaths := 0
				for ; ; deaths++ {
					fault := fmt.Sprintf("%s:%d", when, deaths+1)
					w := newWorld(t, manifest)
					killed := w.run(t, fault)
					done := w.succeeded(t)
					if killed {
						w.run(t, "")
					}
					w.same(t, fault, want)
					w.once(t, fault, done)
					if !killed {
						break
					}
				}
				if least := calm.commits(t) / 2; deaths < least {
					t.Errorf("%s: killed %d times, want at least %d", when, deaths, least)
				}
				t.Logf("%s, %s: killed at each of %d commits; phase %s each time", c.name, when, deaths, c.phase)
			}
		})
	}
}

// TestARunGetsToItsEndAlthoughEveryProcessIsKilled checks that a run completes even if every process is killed after a
// few commits.
func TestARunGetsToItsEndAlthoughEveryProcessIsKilled(t *testing.T) {
	manifest := fmt.Sprintf(story, "Abort", "true")
	calm := newWorld(t, manifest)
	calm.run(t, "")
	w := newWorld(t, manifest)
	deaths := 0
	// Each process gets further than the one before it, because a step whose process ends three times in a row fails
	// permanently.
	for w.run(t, fmt.Sprintf("after:%d", 5+2*deaths)) {
		deaths++
		if w.report(t).Phase == v1alpha1.RunSucceeded {
			break // killed right after its end: the same command would begin the next run
		}
		if deaths > 50 {
			t.Fatal("the run makes no progress")
		}
	}
	w.same(t, "killed in each life", calm.report(t))
	t.Logf("killed %d times", deaths)
}

// world is a folder with a manifest and a log.
type world struct{ dir string }

func newWorld(t *testing.T, manifest string) *world {
	t.Helper()
	w := &world{t.TempDir()}
	if err := os.WriteFile(filepath.Join(w.dir, "story.yaml"), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	return w
}

// run starts or resumes the run, and reports whether the process was killed.
func (w *world) run(t *testing.T, fault string) (killed bool) {
	t.Helper()
	cmd := exec.Command(faultctl(t), "run", "-f", "story.yaml", "--local")
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "SCUTE_FAULT="+fault, "SCUTE_FAULT_JOURNAL="+filepath.Join(w.dir, "journal"), "KUBECONFIG=none")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return true
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != 1 {
		t.Fatalf("exit status %d: %s", code, out)
	}
	return false
}

func (w *world) commits(t *testing.T) int {
	t.Helper()
	return len(w.lines(t, "journal"))
}

func (w *world) lines(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, file))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(strings.ReplaceAll(string(data), "undo ", "undo:"))
}

// same compares the result with that of an undisturbed run, except times and the number of attempts.
func (w *world) same(t *testing.T, fault string, want report) {
	t.Helper()
	if diff := cmp.Diff(want, w.report(t)); diff != "" {
		t.Fatalf("%s: the result differs (-undisturbed +killed):\n%s", fault, diff)
	}
}

// once checks that no step ran again whose success was in the log when the process was killed.
func (w *world) once(t *testing.T, fault string, done map[string]int) {
	t.Helper()
	ran := count(w.lines(t, "ran"))
	for _, key := range slices.Sorted(maps.Keys(done)) {
		if ran[key] != done[key] {
			t.Errorf("%s: %s had succeeded after %d runs, but ran %d times in all", fault, key, done[key], ran[key])
		}
	}
}

func count(lines []string) map[string]int {
	n := make(map[string]int)
	for _, line := range lines {
		n[line]++
	}
	return n
}
