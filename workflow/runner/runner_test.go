package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
	"scute.dev/workflow/task"
)

func TestOutputs(t *testing.T) {
	w := newFixture(t)
	w.request(`
tasks:
- {name: a, kind: Do, with: {output: {version: "1.2", list: [7]}}}
- {name: b, kind: Do, needs: [a], with: {say: " ${tasks.a.output.version} ${tasks.a.output.list.0}", fails: 1}, retry: {max: 1, delay: 10ms}}
- {name: c, kind: Do, needs: [{task: b, on: Failure}]}
- {name: d, kind: Do, needs: [b], failurePolicy: Ignore, with: {say: "${tasks.b.output.nothing}"}}
`)
	w.drive("one")
	w.want("Degraded a=Succeeded b=Succeeded c=Skipped d=Ignored")
	w.wantJournal("do a", "done a", "do b 1.2 7", "do b 1.2 7", "done b")
}

func TestParallelIsBounded(t *testing.T) {
	w := newFixture(t)
	gate := w.gate("t0")
	var manifest strings.Builder
	manifest.WriteString("tasks:\n")
	for i := range 20 {
		name := fmt.Sprintf("t%d", i)
		w.gates[name] = gate
		fmt.Fprintf(&manifest, "- {name: %s, kind: Do}\n", name)
	}
	w.request(manifest.String())
	r := w.process("one", nil)
	r.Parallel = 3
	done := w.driving(t.Context(), r)
	w.eventually("as many attempts as are allowed are in flight", func() bool { return w.peakBusy() == 3 })
	started := 0
	for _, e := range w.history(id) {
		if _, ok := e.(workflow.TaskStarted); ok {
			started++
		}
	}
	close(gate)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if most := w.peakBusy(); most != 3 || started != 3 {
		t.Errorf("%d attempts ran at once, and %d were started before the first one ended; want 3 each", most, started)
	}
}

func TestTimeouts(t *testing.T) {
	w := newFixture(t)
	w.request(`
tasks:
- {name: each, kind: Do, with: {sleep: 1m}, timeout: 30ms, retry: {max: 1, delay: 10ms}, failurePolicy: Ignore}
- {name: all, kind: Do, with: {sleep: 1m}, timeout: 40ms, totalTimeout: 100ms, retry: {max: 100, delay: 1ms, factor: 1}, failurePolicy: Ignore}
`)
	s := w.drive("one")
	w.want("Degraded each=Ignored all=Ignored")
	each, all := workflow.Status(s).Tasks[0], workflow.Status(s).Tasks[1]
	if each.Attempts != 2 || !strings.HasPrefix(each.Message, "the attempt timed out") {
		t.Errorf("%d attempts, message %s", each.Attempts, each.Message)
	}
	// At least 40 ms each. A busy machine may not reach the second attempt within 100 ms.
	if all.Attempts > 4 || !strings.Contains(all.Message, "totalTimeout") && !strings.Contains(all.Message, "no time is left") {
		t.Errorf("%d attempts, message %s", all.Attempts, all.Message)
	}
}

func TestAbortAndResume(t *testing.T) {
	w := newFixture(t)
	gate := w.gate("slow")
	fails := w.gate("fails")
	w.request(`
tasks:
- {name: a, kind: Do, with: {output: {kept: true}}}
- {name: slow, kind: Do, needs: [a]}
- {name: fails, kind: Do, needs: [a], with: {fails: 1}}
- {name: last, kind: Do, needs: [slow, fails]}
`)
	done := w.driving(t.Context(), w.process("one", nil))
	w.waitForLine("do slow")
	w.waitForLine("do fails")
	close(fails)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.want("Aborted a=Succeeded slow=Interrupted fails=Failed last=Pending")
	w.waitForLine("cancelled slow")
	close(gate)
	w.command(workflow.ResumeRun{Reason: "mended"})
	s := w.drive("two")
	w.want("Succeeded a=Succeeded slow=Succeeded fails=Succeeded last=Succeeded")
	if n := count(w.recorded(), "do a"); n != 1 {
		t.Errorf("a ran %d times, want once", n)
	}
	if got := string(s.Output("a")); got != `{"kept":true}` {
		t.Errorf("output of a = %s", got)
	}
	if n := count(w.recorded(), "verify a"); n != 1 {
		t.Errorf("a was verified %d times, want once", n)
	}
}

func TestVerifyRunsAgainWhatIsGone(t *testing.T) {
	w := newFixture(t)
	w.request(`
tasks:
- {name: a, kind: Do}
- {name: b, kind: Do, needs: [a]}
- {name: always, kind: Do, always: true}
- {name: c, kind: Do, needs: [b, always], with: {fails: 1}}
`)
	w.drive("one")
	w.want("Aborted a=Succeeded b=Succeeded always=Succeeded c=Failed")
	w.gone["a"] = "somebody deleted it"
	w.command(workflow.ResumeRun{})
	w.drive("one")
	w.want("Succeeded a=Succeeded b=Succeeded always=Succeeded c=Succeeded")
	for name, want := range map[string]int{"do a": 2, "do b": 1, "do always": 2, "do c": 2, "verify always": 0} {
		if n := count(w.recorded(), name); n != want {
			t.Errorf("%q %d times, want %d", name, n, want)
		}
	}
}

// TestWhatTheRunTookAwayStaysAway checks that objects are not created again that a later task has removed, or started
// to remove. Other missing objects are.
func TestWhatTheRunTookAwayStaysAway(t *testing.T) {
	w := newFixture(t)
	w.request(`
tasks:
- {name: a, kind: Do}
- {name: b, kind: Do, needs: [a]}
- {name: c, kind: Do, needs: [b]}
- {name: take-a, kind: Remove, needs: [c], with: {say: " of a"}}
- {name: take-b, kind: Remove, needs: [take-a], with: {say: " of b", fails: 1}}
- {name: take-c, kind: Remove, needs: [take-b], with: {say: " of c"}}
`)
	w.drive("one")
	w.want("Aborted a=Succeeded b=Succeeded c=Succeeded take-a=Succeeded take-b=Failed take-c=Pending")
	w.gone["a"], w.gone["b"], w.gone["c"] = "it is gone", "it is gone", "it is gone"
	w.command(workflow.ResumeRun{})
	w.drive("two")
	w.want("Succeeded a=Succeeded b=Succeeded c=Succeeded take-a=Succeeded take-b=Succeeded take-c=Succeeded")
	for name, want := range map[string]int{"do a": 1, "do b": 1, "do c": 2, "do take-b of b": 2} {
		if n := count(w.recorded(), name); n != want {
			t.Errorf("%q %d times, want %d", name, n, want)
		}
	}
}

func TestPauseAndDecide(t *testing.T) {
	w := newFixture(t)
	w.request(`
failurePolicy: Pause
tasks:
- {name: a, kind: Do, with: {fails: 9}}
- {name: b, kind: Do, needs: [a]}
- {name: gate, kind: Do, with: {ask: "is it all right?"}}
- {name: other, kind: Do}
`)
	w.drive("one")
	w.want("Paused a=Paused b=Pending gate=Paused other=Succeeded")
	if err := w.process("one", nil).Drive(t.Context(), id); err != nil { // nothing to do: it returns at once
		t.Fatal(err)
	}
	w.command(workflow.Decision{Task: "a", Action: workflow.ActRetry, With: []byte(`{"say":" patched"}`)})
	w.drive("two")
	w.want("Paused a=Succeeded b=Succeeded gate=Paused other=Succeeded")
	w.command(workflow.Decision{Task: "gate", Action: workflow.ActSucceed, Output: []byte(`{"yes":true}`)})
	w.drive("three")
	w.want("Succeeded a=Succeeded b=Succeeded gate=Succeeded other=Succeeded")
	if count(w.recorded(), "do a patched") != 1 {
		t.Errorf("the changed inputs were not used: %v", w.recorded())
	}
}

// TestRollback checks that tasks are undone in reverse order, with their recorded data, and that ending the run does
// not cancel an undo.
func TestRollback(t *testing.T) {
	w := newFixture(t)
	fails := w.gate("fails")
	w.request(`
failurePolicy: Rollback
tasks:
- {name: a, kind: Do}
- {name: b, kind: Do, needs: [a], with: {undo: once}}
- {name: flight, kind: Do, needs: [b], with: {sleep: 1m}}
- {name: fails, kind: Do, needs: [b], with: {fails: 1, final: true}, retry: {max: 3}}
- {name: unfilled, kind: Do, needs: [a], failurePolicy: Ignore, with: {say: "${tasks.a.output.nothing}"}}
`)
	done := w.driving(t.Context(), w.process("one", nil))
	w.waitForLine("do flight")
	w.waitForLine("do fails")
	close(fails)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.want("RollbackFailed a=Succeeded b=UndoFailed flight=Undone fails=Undone unfilled=Undone")
	w.command(workflow.Decision{Task: "b", Action: workflow.ActRetryUndo})
	gate := w.gate("undo b")
	ctx, cancel := context.WithCancel(t.Context())
	done = w.driving(ctx, w.process("two", nil))
	w.eventually("b is undone again", func() bool { return count(w.recorded(), `undo b {"in":1,"made":"b"}`) == 2 })
	cancel() // the process ends, which cancels the undo; the next process starts it again
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(gate)
	w.drive("three")
	w.want("RolledBack a=Undone b=Undone flight=Undone fails=Undone unfilled=Undone")
	lines := w.recorded()
	if a, b := slices.Index(lines, `undo a {"in":1,"made":"a"}`), slices.Index(lines, "undone b"); a < b || b < 0 {
		t.Errorf("a was undone before b: %v", lines)
	}
}

func TestRecreate(t *testing.T) {
	w := newFixture(t)
	w.request(`
tasks:
- {name: a, kind: Do, with: {fails: 1, recorded: true}, retry: {max: 1, delay: 1ms, recreate: true}}
`)
	w.drive("one")
	w.wantJournal("recorded ", "do a", `undo a {"in":1,"made":"a"}`, "undone a", "recorded ", "do a", "done a")
}

// TestRecreateByItsOwnUndo checks that what a failed attempt created is removed with the undo of the manifest, and with
// the output that the attempt recorded.
func TestRecreateByItsOwnUndo(t *testing.T) {
	for name, c := range map[string]struct {
		undo string
		want []string
	}{
		"a step":           {`{kind: Do, with: {say: " undoes ${tasks.a.output.id}", noRecord: true}}`, []string{"do a", "do a undoes 7", "done a", "do a", "done a"}},
		"nothing to undo":  {"None", []string{"do a", "do a", "done a"}},
		"nothing recorded": {`{kind: Do, with: {say: "${tasks.b.output}"}}`, []string{"done b", "do a", "do a", "done a"}},
		"half recorded":    {`{kind: Do, with: {say: "${tasks.a.output.other}"}}`, []string{"done b", "do a", "do a", "done a"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.request(`
tasks:
- {name: b, kind: Do, with: {noRecord: true}}
- {name: a, kind: Do, needs: [b], with: {fails: 1, output: {id: 7}}, retry: {max: 1, delay: 1ms, recreate: true}, undo: ` + c.undo + `}
`)
			w.drive("one")
			if got := w.recorded()[2:]; !slices.Equal(got, c.want[max(len(c.want)-len(got), 0):]) {
				t.Errorf("steps = %v", got)
			}
		})
	}
}

// TestKept checks that a rollback continues past tasks that cannot be undone: an undo that lacks the output that it
// uses, and a kind without an inverse.
func TestKept(t *testing.T) {
	w := newFixture(t)
	w.request(`
failurePolicy: Rollback
tasks:
- {name: base, kind: Do, with: {output: {id: b1}}, undo: {kind: Do, with: {say: " undoes ${tasks.base.output.id}"}}}
- {name: none, kind: Do, needs: [base], with: {undo: none}}
- {name: half, kind: Do, needs: [none], failurePolicy: Ignore, with: {output: {id: h1}, fails: 1}, undo: {kind: Do, with: {say: " undoes ${tasks.half.output.id}"}}}
- {name: default, kind: Do, needs: [half], with: {say: " on ${tasks.half.output.id}"}, undo: {kind: Do, with: {say: " undoes ${tasks.default.output.id:-what is there}"}}}
- {name: create, kind: Do, needs: [default], with: {fails: 1}, undo: {kind: Do, with: {say: " undoes ${tasks.create.output.id}"}}}
`)
	s := w.drive("one")
	w.want("RolledBack base=Undone none=Kept half=Undone default=Undone create=Kept")
	w.wantJournal("do base", "done base", "do none", "done none", "do half", "do default on h1", "done default", "do create",
		"do default undoes what is there", "done default", "do half undoes h1", "done half",
		`undo none {"in":1,"made":"none"}`, "do base undoes b1", "done base")
	if got, want := workflow.Status(s).Message, "rolled back: create: it does not work; effects kept, because they cannot be undone: none, create"; got != want {
		t.Errorf("message = %q", got)
	}
}

// TestKeptByAHalf checks that a failed task may lack an output that its undo uses. If a task succeeded without it, this
// is a mistake, which is reported.
func TestKeptByAHalf(t *testing.T) {
	for name, c := range map[string]struct {
		create, after int
		want          string
	}{
		"failed":    {1, 0, "RolledBack base=Undone create=Kept after=Pending"},
		"succeeded": {0, 1, "RollbackFailed base=Succeeded create=UndoFailed after=Undone"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.request(fmt.Sprintf(`
failurePolicy: Rollback
tasks:
- {name: base, kind: Do}
- {name: create, kind: Do, needs: [base], with: {output: {half: 1}, fails: %d}, undo: {kind: Do, with: {say: "${tasks.create.output.id}"}}}
- {name: after, kind: Do, needs: [create], with: {fails: %d}}
`, c.create, c.after))
			w.drive("one")
			w.want(c.want)
		})
	}
}

// TestOwnOutput checks that a hook after a task can use the task's output in its strings and inputs.
func TestOwnOutput(t *testing.T) {
	w := newFixture(t)
	w.request(`
tasks:
- name: a
  kind: Do
  with: {output: {x: 1}}
  after: [{name: h, kind: Do, with: {say: " sees ${tasks.a.output.x}"}}]
`)
	s := w.drive("one")
	w.want("Succeeded a=Succeeded")
	w.wantJournal("do a", "done a", "do a:after/h sees 1", "done a:after/h")
	if before, after := s.Inputs("a", ""), s.Inputs("a", "after/h"); len(before) != 0 || string(after["a"]) != `{"x":1}` {
		t.Errorf("inputs before = %v, after = %v", before, after)
	}
}

// TestReaders checks that the outputs of all earlier tasks are passed only to kinds that read them.
func TestReaders(t *testing.T) {
	w := newFixture(t)
	w.request(`
tasks:
- {name: a, kind: Do, with: {output: {x: 1}}}
- {name: b, kind: Do, needs: [a], with: {output: {x: 2}}}
- {name: c, kind: Read, needs: [b]}
- {name: d, kind: Do, needs: [c], undo: {kind: Read}}
`)
	w.drive("one")
	w.wantJournal("do a", "done a", "do b", "done b", "do c", "c reads [a b]", "done c", "do d", "d reads [a b]", "done d")
}

func TestHooksAndHandlers(t *testing.T) {
	w := newFixture(t)
	w.request(`
hooks:
  pre: [{name: first, kind: Do}]
  post: [{name: last, kind: Do}]
  onFailure: [{name: collect, kind: Do}]
tasks:
- {name: a, kind: Do, before: [{name: x, kind: Do}], after: [{name: z, kind: Do}]}
- {name: b, kind: Do, needs: [a], failurePolicy: Ignore, with: {fails: 9}, retry: {max: 1, delay: 1ms}}
- {name: c, kind: Do, needs: [b], with: {fails: 1}}
`)
	w.drive("one")
	w.want("Aborted pre/first=Succeeded a=Succeeded b=Ignored c=Failed post/last=Pending")
	for line, want := range map[string]int{
		"handle b (Do 2) error: it does not work": 1, "handle c (Do 1) error: it does not work": 1, "handle  ( 0) error: it does not work": 1,
	} {
		if n := count(w.recorded(), line); n != want {
			t.Errorf("%q %d times: %v", line, n, w.recorded())
		}
	}
	w.command(workflow.ResumeRun{})
	w.drive("one")
	w.want("Degraded pre/first=Succeeded a=Succeeded b=Ignored c=Succeeded post/last=Succeeded")
	var order []string
	for _, line := range w.recorded() {
		if name, ok := strings.CutPrefix(line, "done "); ok {
			order = append(order, name)
		}
	}
	if want := []string{"pre/first", "a:before/x", "a", "a:after/z", "c", "post/last"}; !slices.Equal(order, want) {
		t.Errorf("order = %v", order)
	}
}

// TestHooksOfASkippedTask checks that the hooks of a skipped task are neither run nor undone.
func TestHooksOfASkippedTask(t *testing.T) {
	w := newFixture(t)
	w.request(`
failurePolicy: Rollback
tasks:
- {name: look, kind: Do, with: {output: nothing to do}}
- {name: pivot, kind: Skip, needs: [look], before: [{name: x, kind: Do}], after: [{name: z, kind: Do, undo: {kind: Do}}, {name: ask, kind: Do, with: {ask: may I}}]}
- {name: other, kind: Do, needs: [pivot], before: [{name: w, kind: Do}], with: {fails: 1}}
`)
	w.drive("one")
	w.want("RolledBack look=Undone pivot=Undone other=Undone")
	var did []string
	for _, line := range w.recorded() {
		if strings.HasPrefix(line, "do ") {
			did = append(did, strings.TrimPrefix(line, "do "))
		}
	}
	if want := []string{"look", "pivot", "other:before/w", "other"}; !slices.Equal(did, want) {
		t.Errorf("steps = %v", did)
	}
}

// TestHolds checks that holds are released however a run ends, and acquired again on a resume.
func TestHolds(t *testing.T) {
	for _, c := range []struct{ policy, want string }{
		{"Abort", "Aborted hold=Succeeded work=Failed"}, {"Rollback", "RolledBack hold=Undone work=Undone"}, {"Ignore", "Degraded hold=Succeeded work=Ignored"},
	} {
		t.Run(c.policy, func(t *testing.T) {
			w := newFixture(t)
			w.request(fmt.Sprintf(`
failurePolicy: %s
tasks:
- {name: hold, kind: Hold}
- {name: work, kind: Do, needs: [hold], with: {fails: 1}}
`, c.policy))
			w.drive("one")
			w.want(c.want)
			if count(w.recorded(), "undone hold") != 1 {
				t.Errorf("the hold was not released: %v", w.recorded())
			}
			if c.policy == "Abort" {
				w.command(workflow.ResumeRun{})
				w.drive("one")
				w.want("Succeeded hold=Succeeded work=Succeeded")
				if count(w.recorded(), "do hold") != 2 || count(w.recorded(), "undone hold") != 2 {
					t.Errorf("the hold was not acquired and released again: %v", w.recorded())
				}
			}
		})
	}
}

// TestLostProcess kills a process while tasks run: nothing that it does afterwards is stored.
func TestLostProcess(t *testing.T) {
	w := newFixture(t)
	gate := w.gate("once")
	w.gate("again")
	w.request(`
tasks:
- {name: a, kind: Do}
- {name: once, kind: Do, needs: [a], atMostOnce: true}
- {name: again, kind: Do, needs: [a]}
`)
	dying := &dyingLog{Log: w.log}
	ctx, cancel := context.WithCancel(t.Context())
	done := w.driving(ctx, w.process("one", dying))
	w.waitForLine("do once")
	w.waitForLine("do again")
	dying.kill()
	cancel()
	if err := <-done; err == nil {
		t.Fatal("Drive of the killed process succeeded")
	}
	close(gate)
	close(w.gates["again"])
	w.drive("two")
	w.want("Paused a=Succeeded once=Paused again=Succeeded")
	if count(w.recorded(), "do a") != 1 || count(w.recorded(), "do again") != 2 || count(w.recorded(), "do once") != 1 {
		t.Errorf("steps = %v", w.recorded())
	}
}

// TestLeave checks that a process that is asked to end stores what is done by then, so that it is not done again.
func TestLeave(t *testing.T) {
	w := newFixture(t)
	w.gate("slow")
	w.request(`
tasks:
- {name: slow, kind: Do}
- {name: quick, kind: Do, with: {sleep: 200ms}}
`)
	ctx, cancel := context.WithCancel(t.Context())
	done := w.driving(ctx, w.process("one", nil))
	w.waitForLine("do slow")
	w.waitForLine("do quick")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(w.gates["slow"])
	w.drive("two")
	w.want("Succeeded slow=Succeeded quick=Succeeded")
}

// cancelingLog is a log whose process is asked to end while it stores the start of a task.
type cancelingLog struct {
	aggregate.Log
	cancel context.CancelFunc
}

func (e *cancelingLog) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	if slices.ContainsFunc(c.Events, func(event eventlog.Event) bool { return strings.Contains(event.Type, ".task-started.") }) {
		e.cancel()
	}
	return e.Log.Append(ctx, c)
}

// TestOrderlyEndAtAStart checks that a start that is stored just when the process is asked to end does not count as a
// lost attempt: nothing had started.
func TestOrderlyEndAtAStart(t *testing.T) {
	w := newFixture(t)
	w.request("tasks:\n- {name: a, kind: Do}\n")
	for range workflow.LostLimit + 1 {
		ctx, cancel := context.WithCancel(t.Context())
		if err := <-w.driving(ctx, w.process("one", &cancelingLog{w.log, cancel})); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	w.drive("two")
	w.want("Succeeded a=Succeeded")
	if count(w.recorded(), "do a") != 1 {
		t.Errorf("steps = %v", w.recorded())
	}
}

// TestOrderlyEnds checks that a driver that is asked to end starts nothing more, and has nothing running when it
// returns. This does not count as a crash, however often it happens. A handler that is interrupted runs again before
// the rollback.
func TestOrderlyEnds(t *testing.T) {
	w := newFixture(t)
	slow, handle := w.gate("slow"), w.gate("handle")
	w.request(`
failurePolicy: Rollback
hooks:
  onFailure: [{name: collect, kind: Do}]
tasks:
- {name: slow, kind: Do}
- {name: fails, kind: Do, needs: [slow], with: {fails: 1}}
`)
	end := func(line string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		before := count(w.recorded(), line)
		done := w.driving(ctx, w.process("one", nil))
		w.eventually("again: "+line, func() bool { return count(w.recorded(), line) > before })
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	for range workflow.LostLimit + 1 {
		end("do slow")
	}
	close(slow)
	end("handle fails (Do 1) error: it does not work")
	if slices.Contains(w.recorded(), "undone slow") {
		t.Error("rolled back before the handler has run")
	}
	close(handle)
	w.drive("two")
	w.want("RolledBack slow=Undone fails=Undone")
}

func TestAnotherClaim(t *testing.T) {
	w := newFixture(t)
	gate := w.gate("a")
	w.request(`
tasks:
- {name: a, kind: Do}
- {name: b, kind: Do, needs: [a]}
`)
	done := w.driving(t.Context(), w.process("one", nil))
	w.waitForLine("do a")
	ctx, cancel := context.WithCancel(t.Context())
	other := w.driving(ctx, w.process("two", nil))
	w.eventually("two has it", func() bool { return w.state().Holder == "two" })
	if err := <-done; !errors.Is(err, aggregate.ErrClaimLost) {
		t.Fatalf("Drive of the first process = %v, want ErrLost", err)
	}
	if slices.Contains(w.recorded(), "do b") {
		t.Error("b has started")
	}
	close(gate)
	if err := <-other; err != nil {
		t.Fatal(err)
	}
	cancel()
	w.want("Succeeded a=Succeeded b=Succeeded")
	if count(w.recorded(), "do a") != 2 || count(w.recorded(), "do b") != 1 {
		t.Errorf("steps = %v", w.recorded())
	}
}

// TestOperatorInTheMiddle checks that a user's command and a decision that are stored concurrently both take effect.
func TestOperatorInTheMiddle(t *testing.T) {
	w := newFixture(t)
	gate := w.gate("a")
	w.request(`
tasks:
- {name: a, kind: Do}
- {name: b, kind: Do, needs: [a]}
- {name: c, kind: Do, needs: [a]}
`)
	done := w.driving(t.Context(), w.process("one", nil))
	w.waitForLine("do a")
	w.command(workflow.HoldTask{Task: "b", Reason: "let me look"})
	close(gate)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.want("Paused a=Succeeded b=Paused c=Succeeded")
	w.command(workflow.ReleaseTask{Task: "b"})
	w.drive("one")
	w.want("Succeeded a=Succeeded b=Succeeded c=Succeeded")
	for _, line := range []string{"do a", "do b", "do c"} {
		if n := count(w.recorded(), line); n != 1 {
			t.Errorf("%q %d times, want once", line, n)
		}
	}
}

// TestPauseTheRun checks that a paused run lets running tasks end, and starts no others.
func TestPauseTheRun(t *testing.T) {
	w := newFixture(t)
	gate := w.gate("a")
	w.request(`
tasks:
- {name: a, kind: Do}
- {name: b, kind: Do, needs: [a]}
`)
	done := w.driving(t.Context(), w.process("one", nil))
	w.waitForLine("do a")
	w.command(workflow.PauseRun{Reason: "maintenance"})
	w.want("PartiallyPaused a=Running b=Pending")
	close(gate)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.want("Paused a=Succeeded b=Pending")
	w.command(workflow.ResumeRun{})
	w.drive("two")
	w.want("Succeeded a=Succeeded b=Succeeded")
}

// TestAbortTheRun checks that an abort cancels running tasks.
func TestAbortTheRun(t *testing.T) {
	w := newFixture(t)
	w.gate("a")
	w.request(`
tasks:
- {name: a, kind: Do}
`)
	done := w.driving(t.Context(), w.process("one", nil))
	w.waitForLine("do a")
	w.command(workflow.AbortRun{Reason: "the wrong cluster"})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.want("Aborted a=Interrupted")
}

// TestLogAway checks that a run continues after the log was unreachable for a moment.
func TestLogAway(t *testing.T) {
	w := newFixture(t)
	w.request(`
tasks:
- {name: a, kind: Do}
- {name: b, kind: Do, needs: [a]}
- {name: c, kind: Do, needs: [b]}
`)
	if err := w.process("one", &flakyLog{Log: w.log}).Drive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.want("Succeeded a=Succeeded b=Succeeded c=Succeeded")
	w.wantJournal("do a", "done a", "do b", "done b", "do c", "done c")
}

// TestStranded checks that a run that this process cannot handle is claimed once and reported as stranded, and that
// another process can continue it.
func TestStranded(t *testing.T) {
	w := newFixture(t)
	w.request("tasks:\n- {name: a, kind: Do}\n")
	r := w.process("one", nil)
	r.Kinds = noKinds
	if err := r.Drive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.want("Stranded a=Pending")
	w.drive("two")
	w.want("Succeeded a=Succeeded")
}

// TestManyTasks drives 2,000 tasks in parallel, and 2,000 in sequence.
func TestManyTasks(t *testing.T) {
	for name, needs := range map[string]func(i int) string{
		"wide": func(int) string { return "" }, "chain": func(i int) string { return fmt.Sprintf(", needs: [t%d]", i-1) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			var manifest strings.Builder
			manifest.WriteString("tasks:\n- {name: t0, kind: Do, with: {noRecord: true}}\n")
			for i := 1; i < 2000; i++ {
				fmt.Fprintf(&manifest, "- {name: t%d, kind: Do, with: {noRecord: true}%s}\n", i, needs(i))
			}
			w.request(manifest.String())
			begun := time.Now()
			status := workflow.Status(w.drive("one"))
			t.Logf("%s: %s, %d tasks succeeded in %s", name, status.Phase, status.Counts.Succeeded, time.Since(begun))
			if status.Counts.Succeeded != 2000 || len(w.recorded()) != 4000 {
				t.Errorf("%d tasks succeeded, %d journal lines", status.Counts.Succeeded, len(w.recorded()))
			}
		})
	}
}

func count(lines []string, line string) (n int) {
	for _, l := range lines {
		if l == line {
			n++
		}
	}
	return n
}

// TestKeys checks the idempotency keys of a run of this version, of a local run, whose keys contain the ID of its log,
// and of a run that an earlier version started: it keeps its old keys, by which external systems know it.
func TestKeys(t *testing.T) {
	const manifest = `
failurePolicy: Rollback
tasks:
- {name: a, kind: Do, with: {key: true}, before: [{name: x, kind: Do, with: {key: true}}], undo: {kind: Do, with: {key: true}}}
- {name: a/before/x, kind: Do, needs: [a], with: {key: true}}
- {name: z, kind: Do, needs: [a/before/x], with: {fails: 1, final: true}}
`
	for name, c := range map[string]struct {
		keys   int
		origin string
		want   []string
	}{
		"of this version": {workflow.StepKeys, "", []string{"run/1/a@before/x", "run/1/a", "run/1/a/before/x", "run/1/a:undo"}},
		"local":           {workflow.StepKeys, "00aa", []string{"run/1.00aa/a@before/x", "run/1.00aa/a", "run/1.00aa/a/before/x", "run/1.00aa/a:undo"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			if c.keys == workflow.StepKeys {
				beginner := w.process("user", nil)
				beginner.Origin = c.origin
				if err := beginner.Request(t.Context(), id, "user/test", w.build(manifest)); err != nil {
					t.Fatal(err)
				}
			} else {
				w.store(t, workflow.Start(w.build(manifest), "", time.Now()), func(e workflow.Event) workflow.Event {
					if started, ok := e.(workflow.Started); ok {
						started.KeyForm = c.keys
						return started
					}
					return e
				})
			}
			w.drive("one")
			w.want("RolledBack a=Undone a/before/x=Undone z=Undone")
			var keys []string
			for _, line := range w.recorded() {
				if key, ok := strings.CutPrefix(line, "key "); ok {
					keys = append(keys, key)
				}
			}
			if !slices.Equal(keys, c.want) {
				t.Errorf("keys = %v, want %v", keys, c.want)
			}
		})
	}
}

// store appends events to the run as an earlier process.
func (w *fixture) store(t *testing.T, facts []workflow.Event, edit func(workflow.Event) workflow.Event) {
	t.Helper()
	commit := eventlog.Commit{Aggregate: eventlog.Aggregate{Kind: eventlog.KindRun, ID: id}}
	for _, fact := range facts {
		ev, err := workflow.NewCatalog().Encode(edit(fact))
		if err != nil {
			t.Fatal(err)
		}
		ev.Time, ev.Actor, ev.Correlation = time.Now().UTC(), "test", id
		commit.Events = append(commit.Events, ev)
	}
	commit.ID = commit.IDFor("test")
	if _, err := w.log.Append(t.Context(), commit); err != nil {
		t.Fatal(err)
	}
}

// TestClockSetBack checks that delays and timeouts do not get longer if the clock goes back by an hour during a run.
func TestClockSetBack(t *testing.T) {
	w := newFixture(t)
	gate := w.gate("first")
	w.request(`
tasks:
- {name: first, kind: Do}
- {name: again, kind: Do, needs: [first], with: {fails: 1}, retry: {max: 1, delay: 100ms}}
- {name: slow, kind: Do, needs: [again], with: {sleep: 1h}, timeout: 100ms, failurePolicy: Ignore}
- {name: all, kind: Do, needs: [slow], with: {sleep: 1h}, totalTimeout: 100ms, failurePolicy: Ignore}
`)
	var back atomic.Int64
	r := w.process("one", nil)
	r.Now = func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := w.driving(ctx, r)
	w.waitForLine("do first")
	back.Store(int64(time.Hour))
	close(gate)
	if err := <-done; err != nil {
		t.Fatalf("Drive = %v; steps %v", err, w.recorded())
	}
	w.want("Degraded first=Succeeded again=Succeeded slow=Ignored all=Ignored")
	if message := workflow.Status(w.state()).Tasks[3].Message; !strings.Contains(message, "totalTimeout has passed") {
		t.Errorf("message of the last task = %q", message)
	}
}

// removedLog is a log whose files can be removed while it is open.
type removedLog struct {
	aggregate.Log
	gone atomic.Bool
}

func (l *removedLog) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	if l.gone.Load() {
		return eventlog.Receipt{}, fmt.Errorf("%w any more", eventlog.ErrMissing)
	}
	return l.Log.Append(ctx, c)
}

// uninterruptedKind is a kind that completes its work when it is canceled.
type uninterruptedKind struct {
	*kind
	begun chan struct{}
}

func (k *uninterruptedKind) Run(ctx context.Context, _ *task.Call) (json.RawMessage, error) {
	close(k.begun)
	<-ctx.Done()
	return nil, nil
}

// TestWhatIsLostAtTheEndIsNamed checks that a process that is asked to end names the tasks whose results it could not
// store.
func TestWhatIsLostAtTheEndIsNamed(t *testing.T) {
	for name, gone := range map[string]bool{"stored": false, "the log is gone": true} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.request("tasks: [{name: a, kind: Do}]")
			log, k := &removedLog{Log: w.log}, &uninterruptedKind{kind: &kind{fixture: w}, begun: make(chan struct{})}
			r := w.process("one", log)
			r.Kinds = func(context.Context, workflow.Header) (task.Kinds, error) { return task.Kinds{"Do": k}, nil }
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- r.Drive(ctx, id) }()
			<-k.begun
			log.gone.Store(gone)
			cancel()
			err := <-ended
			switch {
			case !gone && !errors.Is(err, context.Canceled):
				t.Errorf("Drive = %v, want context.Canceled", err)
			case gone && (!errors.Is(err, runner.ErrUnrecorded) || !errors.Is(err, eventlog.ErrMissing) || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "not recorded: a: ")):
				t.Errorf("Drive = %v, want ErrUnrecorded with the task", err)
			}
		})
	}
}

// TestResumeWaitsForTheReleaseThatItCancels pauses and resumes a run while a hold is being released. The hold must not
// be acquired again before that attempt has ended.
func TestResumeWaitsForTheReleaseThatItCancels(t *testing.T) {
	w := newFixture(t)
	w.gate("undo hold")
	linger := w.gate("undo cancelled hold")
	w.request(`
tasks:
- {name: hold, kind: Hold}
- {name: again, kind: Do, always: true}
`)
	done := w.driving(t.Context(), w.process("one", nil))
	w.eventually("the hold is released", func() bool {
		return slices.ContainsFunc(w.recorded(), func(line string) bool { return strings.HasPrefix(line, "undo hold ") })
	})
	w.command(workflow.PauseRun{})
	w.command(workflow.ResumeRun{})
	w.waitForLine("undo cancelled hold")
	w.eventually("the other task runs again", func() bool { return count(w.recorded(), "done again") == 2 })
	if n := count(w.recorded(), "do hold"); n != 1 {
		t.Error("the hold was acquired while it was being released")
	}
	w.mu.Lock()
	delete(w.gates, "undo hold")
	w.mu.Unlock()
	close(linger)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.want("Succeeded hold=Succeeded again=Succeeded")
	if n := count(w.recorded(), "do hold"); n != 2 {
		t.Errorf("the hold was acquired %d times, want 2", n)
	}
}

// TestRetryLeavesTheHandlerRunning checks that a user's retry does not interrupt the handler of the failure.
func TestRetryLeavesTheHandlerRunning(t *testing.T) {
	w := newFixture(t)
	gate := w.gate("handle")
	w.request(`
hooks:
  onFailure: [{name: collect, kind: Do}]
tasks:
- {name: a, kind: Do, failurePolicy: Pause, with: {fails: 1}}
`)
	done := w.driving(t.Context(), w.process("one", nil))
	w.waitForLine("handle a (Do 1) error: it does not work")
	w.command(workflow.Decision{Task: "a", Action: workflow.ActRetry, Reason: "fixed"})
	w.waitForLine("done a")
	close(gate)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := count(w.recorded(), "handle a (Do 1) error: it does not work"); n != 1 {
		t.Errorf("the handler started %d times, want once", n)
	}
	for _, e := range w.history(id) {
		if ended, ok := e.(workflow.HandlerEnded); ok && ended.Error != "the handler fails" {
			t.Errorf("the handler ended with %q", ended.Error)
		}
	}
}

// TestDiscard checks that Discard removes the folder of a run, and nothing for an ID that is a path to another folder.
func TestDiscard(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	r := &runner.Runner{Dir: func(id string) string { return filepath.Join(dir, filepath.FromSlash(id)) }}
	runs := []string{"fleet/up/1", "fleet/up/2", "fleet/down/1"}
	for _, id := range runs {
		if err := os.MkdirAll(r.Dir(id), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.Dir(id), "a-1.log"), []byte("said"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left := func(want ...string) {
		t.Helper()
		got, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			got[i], _ = filepath.Rel(dir, got[i])
		}
		if !slices.Equal(got, want) {
			t.Errorf("folders = %v, want %v", got, want)
		}
	}
	for _, id := range []string{".", "..", "../runs", "fleet/up/..", "fleet/up/.", "fleet/up/1", "fleet/up/1"} {
		if err := r.Discard(id); err != nil {
			t.Error(err)
		}
	}
	left("fleet/down", "fleet/up")
	if err := r.Discard("fleet/up/2"); err != nil {
		t.Error(err)
	}
	left("fleet/down")
	for _, none := range []*runner.Runner{{}, {Dir: func(string) string { return "" }}} {
		if err := none.Discard("fleet/down/1"); err != nil {
			t.Error(err)
		}
	}
	left("fleet/down")
}
