package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"sigs.k8s.io/yaml"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
	"scute.dev/workflow/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture simulates what tasks work on. It outlives the processes that drive runs.
type fixture struct {
	t   *testing.T
	log *eventlog.Log

	mu      sync.Mutex
	journal []string
	busy    int
	maxBusy int
	gates   map[string]chan struct{}
	gone    map[string]string // results of Verify by task
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	log := logtest.Open(t)
	return &fixture{t: t, log: log, gates: make(map[string]chan struct{}), gone: make(map[string]string)}
}

// gate makes the named step wait until the gate is closed or the step is canceled.
func (w *fixture) gate(name string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gates[name] = make(chan struct{})
	return w.gates[name]
}

func (w *fixture) record(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.journal = append(w.journal, fmt.Sprintf(format, args...))
}

// recorded returns the journal so far.
func (w *fixture) recorded() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.journal)
}

// peakBusy returns the largest number of concurrent attempts so far.
func (w *fixture) peakBusy() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.maxBusy
}

// waitForLine waits for a line of the journal.
func (w *fixture) waitForLine(line string) {
	w.t.Helper()
	w.eventually("journal has "+line, func() bool { return slices.Contains(w.recorded(), line) })
}

// patience is the timeout of a failed test. It is long enough for a slow disk that syncs each of thousands of commits.
const patience = 5 * time.Minute

func (w *fixture) eventually(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("it never happened: %s; %v", what, w.recorded())
		}
	}
}

// inputs are the inputs of kind Do, which determine the result of an attempt.
type inputs struct {
	Output        json.RawMessage `json:"output,omitempty"`
	Message       string          `json:"say,omitempty"`
	Fails         int             `json:"fails,omitempty"` // number of attempts that fail
	Final         bool            `json:"final,omitempty"`
	Sleep         string          `json:"sleep,omitempty"`
	Question      string          `json:"ask,omitempty"`
	Undo          string          `json:"undo,omitempty"` // attempts to undo that fail: "once", "always"; "none": it has no inverse
	NoRecord      bool            `json:"noRecord,omitempty"`
	Waits         bool            `json:"waits,omitempty"`     // it only waits once it has started
	UndoWaits     bool            `json:"undoWaits,omitempty"` // its undo only waits
	UndoReacquire bool            `json:"undoAgain,omitempty"` // the undo works again afterwards
	Reacquire     bool            `json:"again,omitempty"`     // it works again after its gate
	Key           bool            `json:"key,omitempty"`       // it records its idempotency key
	Recorded      bool            `json:"recorded,omitempty"`  // it records what earlier attempts have recorded
}

// kind acts on a world.
type kind struct {
	*fixture
	isHolder bool
}

func (k *kind) Holds() bool { return k.isHolder }

func (k *kind) Validate(json.RawMessage) []workflow.Problem { return nil }

// remover is a kind that removes what the task that it names has created.
type remover struct{ kind }

func (*remover) Removes(c *task.Call, o task.Object) bool {
	var in inputs
	return json.Unmarshal(c.With, &in) == nil && in.Message == " of "+o.UID
}

// reader is a kind that reads the outputs of earlier tasks.
type reader struct{ kind }

func (*reader) ReadsInputs() {}

// skipper is a kind that has nothing to do if an earlier output says so.
type skipper struct{ kind }

func (*skipper) SkipReason(c *task.Call) string {
	if string(c.Inputs["look"]) == `"nothing to do"` {
		return "nothing to do"
	}
	return ""
}

func label(c *task.Call) string {
	if c.Step == "" {
		return c.Task
	}
	return c.Task + ":" + c.Step
}

func (k *kind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	var in inputs
	if len(c.With) > 0 {
		if err := json.Unmarshal(c.With, &in); err != nil {
			return nil, err
		}
	}
	name := label(c)
	if c.Failure != nil {
		k.record("handle %s (%s %d) %s: %s", c.Failure.Task, c.Failure.Kind, c.Failure.Attempt, c.Failure.Cause, c.Failure.Message)
		k.mu.Lock()
		gate := k.gates["handle"]
		k.mu.Unlock()
		if gate != nil {
			select {
			case <-gate:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return nil, errors.New("the handler fails")
	}
	if in.Recorded {
		k.record("recorded %s", c.Undo)
	}
	if !in.NoRecord {
		if err := c.Prepare(ctx, map[string]any{"made": name, "in": c.Attempt}, false); err != nil {
			return nil, err
		}
	}
	k.mu.Lock()
	k.busy++
	k.maxBusy = max(k.maxBusy, k.busy)
	gate := k.gates[name]
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.busy--
		k.mu.Unlock()
	}()
	k.record("do %s%s", name, in.Message)
	if len(c.Inputs) > 0 {
		k.record("%s reads %s", name, slices.Sorted(maps.Keys(c.Inputs)))
	}
	if in.Key {
		k.record("key %s", c.Key())
	}
	c.Progress("at it")
	if in.Waits {
		c.Yield()
	}
	var sleep <-chan time.Time
	if in.Sleep != "" {
		d, err := time.ParseDuration(in.Sleep)
		if err != nil {
			return nil, err
		}
		sleep = time.After(d)
	}
	if gate != nil || sleep != nil {
		select {
		case <-gate:
		case <-sleep:
		case <-ctx.Done():
			k.record("cancelled %s", name)
			return nil, ctx.Err()
		}
	}
	if in.Reacquire {
		k.record("would work again %s", name)
		if err := c.ReacquireSlot(ctx); err != nil {
			return nil, err
		}
		for range 2 { // the driver handles the second one after it has decided whether to keep the worker
			if err := c.Prepare(ctx, map[string]any{"again": name}, false); err != nil {
				return nil, err
			}
		}
		k.record("works again %s", name)
		k.mu.Lock()
		again := k.gates["again "+name]
		k.mu.Unlock()
		if again != nil {
			<-again
		}
	}
	switch {
	case in.Question != "":
		return nil, &task.DecisionError{Reason: in.Question}
	case in.Fails >= c.Attempt && in.Final:
		return in.Output, task.Final(errors.New("it will never work"))
	case in.Fails >= c.Attempt:
		return in.Output, errors.New("it does not work")
	}
	k.record("done %s", name)
	return in.Output, nil
}

func (k *kind) Undo(ctx context.Context, c *task.Call) error {
	var in inputs
	if len(c.With) > 0 {
		if err := json.Unmarshal(c.With, &in); err != nil {
			return err
		}
	}
	if in.UndoWaits {
		c.Yield()
	}
	k.record("undo %s %s", label(c), c.Undo)
	k.mu.Lock()
	gate, linger := k.gates["undo "+label(c)], k.gates["undo cancelled "+label(c)]
	before := 0
	for _, line := range k.journal {
		if strings.HasPrefix(line, "undo "+label(c)+" ") {
			before++
		}
	}
	k.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			k.record("undo cancelled %s", label(c))
			if linger != nil {
				<-linger
			}
			return ctx.Err()
		}
	}
	if in.UndoReacquire {
		if err := c.ReacquireSlot(ctx); err != nil {
			return err
		}
	}
	if in.Undo == "none" {
		return &task.KeptError{Reason: "it has no inverse"}
	}
	if in.Undo == "always" || in.Undo == "once" && before == 1 {
		return task.Final(errors.New("it cannot be undone"))
	}
	k.record("undone %s", label(c))
	return nil
}

func (k *kind) Verify(_ context.Context, c *task.Call) (string, error) {
	k.record("verify %s", label(c))
	if c.Removed(task.Object{UID: label(c)}) {
		return "", nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gone[label(c)], nil
}

func (w *fixture) kinds(context.Context, workflow.Header) (task.Kinds, error) {
	return task.Kinds{
		"Do": &kind{fixture: w}, "Hold": &kind{fixture: w, isHolder: true}, "Read": &reader{kind{fixture: w}}, "Remove": &remover{kind{fixture: w}}, "Skip": &skipper{kind{fixture: w}},
	}, nil
}

func (w *fixture) build(manifest string) *workflow.Definition {
	w.t.Helper()
	var spec v1alpha1.WorkflowRunSpec
	if err := yaml.UnmarshalStrict([]byte(manifest), &spec); err != nil {
		w.t.Fatal(err)
	}
	d, problems := workflow.Build(&spec, workflow.Options{Name: "test", Kind: func(name string) (workflow.KindInfo, bool) {
		return workflow.KindInfo{Holds: name == "Hold"}, slices.Contains([]string{"Do", "Hold", "Read", "Remove", "Skip"}, name)
	}})
	if d == nil {
		w.t.Fatal(problems)
	}
	return d
}

// process returns a runner with a log that may fail.
func (w *fixture) process(incarnation string, log aggregate.Log) *runner.Runner {
	if log == nil {
		log = w.log
	}
	return &runner.Runner{Log: log, Incarnation: incarnation, Logger: slog.New(slog.DiscardHandler), Kinds: w.kinds}
}

const id = "run/1"

func (w *fixture) request(manifest string) *workflow.Definition {
	w.t.Helper()
	d := w.build(manifest)
	if err := w.process("user", nil).Request(w.t.Context(), id, "user/test", d); err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *fixture) command(in workflow.Input) {
	w.t.Helper()
	if err := w.process("user", nil).Command(w.t.Context(), id, "user/test", in); err != nil {
		w.t.Fatal(err)
	}
}

// drive drives the run until nothing more happens.
func (w *fixture) drive(incarnation string) *workflow.State {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	if err := w.process(incarnation, nil).Drive(ctx, id); err != nil {
		w.t.Fatalf("%v; %v", err, w.recorded())
	}
	return w.state()
}

// driving drives the run in the background. The channel returns the result.
func (w *fixture) driving(ctx context.Context, r *runner.Runner) <-chan error {
	done := make(chan error, 1)
	go func() { done <- r.Drive(ctx, id) }()
	return done
}

func (w *fixture) state() *workflow.State {
	w.t.Helper()
	s, _, err := w.process("user", nil).State(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// phases returns the phases of a run and its tasks in one line.
func phases(s *workflow.State) string {
	status := workflow.Status(s)
	out := string(status.Phase)
	for _, t := range status.Tasks {
		out += fmt.Sprintf(" %s=%s", t.Name, t.Phase)
	}
	return out
}

func (w *fixture) want(want string) {
	w.t.Helper()
	if got := phases(w.state()); got != want {
		w.t.Fatalf("the run is\n%s\nand should be\n%s\n%v\n%+v", got, want, w.recorded(), workflow.Status(w.state()).Tasks)
	}
}

// wantJournal compares the journal with the wanted lines.
func (w *fixture) wantJournal(want ...string) {
	w.t.Helper()
	if got := w.recorded(); !slices.Equal(got, want) {
		w.t.Fatalf("done was\n%s\nand should be\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// history returns the events of a run in the log.
func (w *fixture) history(run string) []workflow.Event {
	w.t.Helper()
	records, err := w.log.Read(w.t.Context(), eventlog.Aggregate{Kind: eventlog.KindRun, ID: run}, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	var facts []workflow.Event
	catalog := workflow.NewCatalog()
	for _, r := range records {
		events, err := r.Events()
		if err != nil {
			w.t.Fatal(err)
		}
		for _, ev := range events {
			fact, err := catalog.Decode(ev)
			if err != nil {
				w.t.Fatal(err)
			}
			facts = append(facts, fact)
		}
	}
	return facts
}
