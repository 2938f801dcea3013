package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

func noKinds(context.Context, workflow.Header) (task.Kinds, error) { return task.Kinds{}, nil }

// errDead is the error of every call of a killed process.
var errDead = errors.New("the process is dead")

// dyingLog is the log of a process that can be killed: after that nothing is stored any more. It
// can be set to die at its n-th append, before or after the commit is stored.
type dyingLog struct {
	aggregate.Log
	dead    atomic.Bool
	mu      sync.Mutex
	appends int
	at      int
	after   bool
}

func (m *dyingLog) kill() { m.dead.Store(true) }

func (m *dyingLog) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead.Load() {
		return eventlog.Receipt{}, errDead
	}
	m.appends++
	if m.appends == m.at && !m.after {
		m.kill()
		return eventlog.Receipt{}, errDead
	}
	r, err := m.Log.Append(ctx, c)
	if m.appends == m.at {
		m.kill()
		return eventlog.Receipt{}, errDead
	}
	return r, err
}

// flakyLog is a log of which every second call fails: the commit may be stored or not.
type flakyLog struct {
	aggregate.Log
	calls atomic.Int32
}

func (f *flakyLog) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	switch f.calls.Add(1) % 4 {
	case 0:
		return eventlog.Receipt{}, eventlog.ErrUnavailable
	case 2:
		if _, err := f.Log.Append(ctx, c); err != nil {
			return eventlog.Receipt{}, err
		}
		return eventlog.Receipt{}, eventlog.ErrUnavailable
	default:
		return f.Log.Append(ctx, c)
	}
}

// TestDeathAtEveryAppend kills the process before and after each of its appends, and continues with another process.
// The result must be the same as without a crash, and nothing that the log records as done may run again.
func TestDeathAtEveryAppend(t *testing.T) {
	deaths := 0
	for name, manifest := range map[string]string{
		"success": `
hooks:
  pre: [{name: first, kind: Do}]
  onFailure: [{name: collect, kind: Do}]
tasks:
- {name: hold, kind: Hold}
- {name: a, kind: Do, needs: [hold], with: {fails: 1, output: {v: 1}}, retry: {max: 2, delay: 1ms}}
- {name: b, kind: Do, needs: [a], before: [{name: x, kind: Do}], after: [{name: z, kind: Do}], with: {say: " ${tasks.a.output.v}"}}
- {name: c, kind: Do, needs: [a], with: {fails: 99}}
- {name: rescue, kind: Do, needs: [{task: c, on: Failure}]}
- {name: join, kind: Do, needs: [{task: rescue, optional: true}, {task: c, optional: true}, b]}
- {name: never, kind: Do, needs: [c]}
`,
		"abort": `
hooks:
  onFailure: [{name: collect, kind: Do}]
tasks:
- {name: hold, kind: Hold}
- {name: a, kind: Do, needs: [hold]}
- {name: b, kind: Do, needs: [a], with: {fails: 99}, retry: {max: 1, delay: 1ms}}
- {name: c, kind: Do, needs: [b]}
`,
		"rollback": `
failurePolicy: Rollback
hooks:
  pre: [{name: first, kind: Do}]
  onFailure: [{name: collect, kind: Do}]
tasks:
- {name: hold, kind: Hold}
- {name: a, kind: Do, needs: [hold], before: [{name: x, kind: Do}]}
- {name: b, kind: Do, needs: [a]}
- {name: c, kind: Do, needs: [a]}
- {name: d, kind: Do, needs: [b, c], with: {fails: 99}, retry: {max: 1, delay: 1ms}}
`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			d := w.build(manifest)
			whole := &dyingLog{Log: w.log}
			want := driveToEnd(t, w, d, "run/whole", whole)
			t.Logf("%d appends, %s", whole.appends, want)
			for at := 1; at <= whole.appends; at++ {
				for _, after := range []bool{false, true} {
					run := fmt.Sprintf("run/%d/%t", at, after)
					if got := driveToEnd(t, w, d, run, &dyingLog{Log: w.log, at: at, after: after}); got != want {
						t.Errorf("crash at append %d (stored: %t): result\n%s\nwant\n%s", at, after, got, want)
					}
					checkNotRepeated(t, w.history(run))
					deaths++
				}
			}
		})
	}
	t.Logf("%d crashes", deaths)
}

// driveToEnd drives a run with a log that may die, and then with new processes until it ends.
func driveToEnd(t *testing.T, w *fixture, d *workflow.Definition, run string, first *dyingLog) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.process("user", nil).Request(ctx, run, "user/test", d); err != nil {
		t.Fatal(err)
	}
	err := w.process("process-0", first).Drive(ctx, run)
	for n := 1; err != nil; n++ {
		if !errors.Is(err, errDead) {
			t.Fatal(err)
		}
		err = w.process(fmt.Sprintf("process-%d", n), nil).Drive(ctx, run)
	}
	s, _, err := w.process("user", nil).State(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	out := phases(s)
	for _, task := range workflow.Status(s).Tasks {
		if task.Output != nil {
			out += " " + task.Name + string(task.Output.Raw)
		}
	}
	if strings.Contains(out, "RolledBack") {
		return out
	}
	return out + " " + workflow.Status(s).Message
}

// checkNotRepeated checks that no step starts again that the log records as done or undone.
func checkNotRepeated(t *testing.T, history []workflow.Event) {
	t.Helper()
	type step struct{ task, step string }
	done, undone := make(map[step]bool), make(map[step]bool)
	for _, e := range history {
		switch e := e.(type) {
		case workflow.StepSucceeded:
			done[step{e.Task, e.Step}] = true
		case workflow.TaskSucceeded:
			done[step{e.Task, e.Step}] = true
		case workflow.Undone:
			undone[step{e.Task, e.Step}] = true
		case workflow.TaskStarted:
			if done[step{e.Task, e.Step}] {
				t.Errorf("%s %s was done and started again", e.Task, e.Step)
			}
		case workflow.UndoStarted:
			if undone[step{e.Task, e.Step}] {
				t.Errorf("%s %s was undone, and its undo started again", e.Task, e.Step)
			}
		}
	}
}
