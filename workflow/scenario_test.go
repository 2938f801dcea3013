package workflow_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
)

// TestScenarios plays runs as scripts, each for one rule, which is at its beginning. A command is an outcome, a user's
// command or a duration (after=5m). Its output has the events that were decided, with all that follow, the effects that
// start, and the state of the run. Rewrite with -rewrite.
func TestScenarios(t *testing.T) {
	for _, folder := range []string{"testdata/build", "testdata/run"} {
		datadriven.Walk(t, folder, func(t *testing.T, path string) {
			start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
			story := &scenario{start: start, now: start, parallel: 16, inFlight: make(map[workflow.EffectID]bool)}
			datadriven.RunTest(t, path, story.send)
		})
	}
}

type scenario struct {
	start, now time.Time
	parallel   int
	definition *workflow.Definition
	state      workflow.State
	log        []fact
	chain      workflow.Chain
	inFlight   map[workflow.EffectID]bool // running effects
}

type fact struct {
	event workflow.Event
	at    time.Time
}

func (s *scenario) send(t *testing.T, d *datadriven.TestData) string {
	var b strings.Builder
	if d.HasArg("after") {
		s.now = s.now.Add(duration(t, d, "after"))
	}
	if d.HasArg("parallel") {
		d.ScanArgs(t, "parallel", &s.parallel)
	}
	switch d.Cmd {
	case "define":
		s.definition = define(t, d, &b)
		if !d.HasArg("show") {
			return b.String()
		}
		for i := range s.definition.Tasks {
			task := &s.definition.Tasks[i]
			own := task.Steps[task.OwnStep()]
			bullet(&b, "%s: %s (%s), retries %d, timeout %s", task.Name, task.Policy, task.PolicySource, own.Retry.Max, time.Duration(own.Timeout))
		}
		return b.String()
	case "start":
		s.store(t, &b, workflow.Start(s.definition, "", s.now)...)
		s.store(t, &b, workflow.Claimed{Holder: "one"})
		s.decide(t, &b, workflow.Tick{Parallel: s.parallel})
	case "death":
		clear(s.inFlight)
		s.store(t, &b, workflow.Claimed{Holder: "another"})
		s.decide(t, &b, workflow.Tick{Parallel: s.parallel})
	case "stranded":
		clear(s.inFlight)
		s.store(t, &b, workflow.Claimed{Holder: "another"}, workflow.Stranded{Reason: strings.TrimSpace(d.Input)})
	case "migrate":
		s.migrate(t, d, &b)
	case "state":
		return s.table()
	case "status":
		message, next := workflow.Explain(&s.state)
		bullet(&b, "%s", message)
		bullet(&b, "next: %s", next)
		return b.String()
	default:
		s.decide(t, &b, s.input(t, d))
	}
	s.effects(&b)
	bullet(&b, "%s", s.summary())
	return b.String()
}

// decide decides on an input, and on everything that follows, as a driver does.
func (s *scenario) decide(t *testing.T, b *strings.Builder, in workflow.Input) {
	t.Helper()
	events, err := workflow.Decide(&s.state, in, s.now)
	if err != nil {
		bullet(b, "refused: %v", err)
		return
	}
	for quiet := len(events) == 0; ; {
		s.store(t, b, events...)
		if events, err = workflow.Decide(&s.state, workflow.Tick{Parallel: s.parallel}, s.now); err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			if _, tick := in.(workflow.Tick); quiet && !tick {
				bullet(b, "nothing to say")
			}
			return
		}
		quiet = false
	}
}

// store applies events, and checks that the state is nothing but the fold of the log.
func (s *scenario) store(t *testing.T, b *strings.Builder, events ...workflow.Event) {
	t.Helper()
	for _, e := range events {
		bullet(b, "%s", eventText(e, s.now))
		if wrong := s.chain.Check(&s.state, e); wrong != "" {
			t.Error(wrong)
		}
		s.log = append(s.log, fact{e, s.now})
		s.state.Apply(e, s.now)
	}
	var again workflow.State
	for _, f := range s.log {
		again.Apply(f.event, f.at)
	}
	if diff := cmp.Diff(workflow.Status(&s.state), workflow.Status(&again)); diff != "" {
		t.Fatalf("replayed state differs: %s", diff)
	}
}

// effects prints the effects that start, and those that are cancelled.
func (s *scenario) effects(b *strings.Builder) {
	wanted := make(map[workflow.EffectID]bool)
	for _, e := range workflow.Effects(&s.state) {
		wanted[e.EffectID] = true
		if s.inFlight[e.EffectID] {
			continue
		}
		s.inFlight[e.EffectID] = true
		word := "> " + name(e.EffectID)
		if e.Recreate {
			word += ", what there is first taken away"
		}
		if e.Kind == workflow.EffectAct && e.Attempt > 1 && e.Execution == e.Attempt {
			word += ", a new execution"
		}
		if len(e.With) > 0 && e.Kind == workflow.EffectAct {
			word += " with " + string(e.With)
		}
		if len(e.Undo) > 0 && e.Kind == workflow.EffectUndo {
			word += " by " + string(e.Undo)
		}
		if e.Kind == workflow.EffectHandle {
			word += fmt.Sprintf(" (%s: %s)", e.Cause, e.Message)
			if e.FailedKind != "" {
				word += fmt.Sprintf(" of %s, attempt %d", e.FailedKind, e.FailedAttempt)
			}
		}
		bullet(b, "%s", word)
	}
	var gone []string
	for id := range s.inFlight {
		if !wanted[id] {
			delete(s.inFlight, id)
			if id.Kind == workflow.EffectAct && workflow.Cancelled(&s.state) {
				gone = append(gone, "> cancel "+name(id))
			}
		}
	}
	slices.Sort(gone)
	for _, g := range gone {
		bullet(b, "%s", g)
	}
}

func name(id workflow.EffectID) string {
	what := map[workflow.EffectKind]string{
		workflow.EffectAct: "perform", workflow.EffectUndo: "undo", workflow.EffectHandle: "handle", workflow.EffectVerify: "verify",
	}[id.Kind]
	for _, part := range []string{id.Task, id.Step} {
		if part != "" {
			what += " " + part
		}
	}
	if id.Attempt > 1 {
		what += fmt.Sprintf(" #%d", id.Attempt)
	}
	return what
}

// summary returns a line with the time, the run and its tasks.
func (s *scenario) summary() string {
	status := workflow.Status(&s.state)
	out := fmt.Sprintf("%s %s:", s.now.Sub(s.start), status.Phase)
	for _, task := range status.Tasks {
		out += fmt.Sprintf(" %s=%s", task.Name, task.Phase)
	}
	if at := workflow.NextAt(&s.state); !at.IsZero() {
		out += fmt.Sprintf(", next at %s", at.Sub(s.start))
	}
	return out
}

func (s *scenario) table() string {
	var b strings.Builder
	for _, task := range workflow.Status(&s.state).Tasks {
		line := fmt.Sprintf("%-10s %-12s %-10s %d", task.Name, task.Phase, task.Verdict, task.Attempts)
		if task.Question > 0 {
			line += fmt.Sprintf(" question %d", task.Question)
		}
		if task.Output != nil {
			line += " " + string(task.Output.Raw)
		}
		if task.Message != "" {
			line += " " + task.Message
		}
		bullet(&b, "%s", strings.TrimRight(line, " "))
	}
	return b.String()
}

func (s *scenario) migrate(t *testing.T, d *datadriven.TestData, b *strings.Builder) {
	t.Helper()
	to := define(t, d, b)
	list := func(key string) (names []string) {
		for _, arg := range d.CmdArgs {
			if arg.Key == key {
				names = append(names, arg.Vals...)
			}
		}
		return names
	}
	plan, ok := workflow.Plan(&s.state, to, workflow.Choices{Keep: list("keep"), Rerun: list("rerun"), Backfill: list("backfill")})
	for _, c := range plan {
		bullet(b, "plan: %s %s: %s %s", c.Task, c.Kind, c.Action, c.Note)
	}
	if ok != !slices.ContainsFunc(plan, func(c workflow.Change) bool { return c.Action == workflow.Undecided }) {
		t.Fatalf("Plan = %t, but undecided changes differ", ok)
	}
	s.decide(t, b, workflow.Migrate{To: to, Plan: plan})
}

func (s *scenario) input(t *testing.T, d *datadriven.TestData) workflow.Input {
	t.Helper()
	word := func(n int) string {
		if n < len(d.CmdArgs) && len(d.CmdArgs[n].Vals) == 0 {
			return d.CmdArgs[n].Key
		}
		return ""
	}
	option := func(key string) (value string) {
		if d.HasArg(key) {
			d.ScanArgs(t, key, &value)
		}
		return value
	}
	document := func(key string) json.RawMessage {
		if d.HasArg(key) {
			return json.RawMessage(strings.TrimSpace(d.Input))
		}
		return nil
	}
	text, task, step := strings.TrimSpace(d.Input), word(0), option("step")
	attempt := 1
	for _, f := range s.log {
		if e, ok := f.event.(workflow.TaskStarted); ok && e.Task == task && e.Step == step {
			attempt = e.Attempt
		}
	}
	if d.HasArg("attempt") {
		d.ScanArgs(t, "attempt", &attempt)
	}
	var gone []workflow.Gone
	switch d.Cmd {
	case "tick":
		return workflow.Tick{Parallel: s.parallel}
	case "done":
		return workflow.ActDone{Task: task, Step: step, Attempt: attempt, Output: document("output")}
	case "failed":
		var output json.RawMessage
		if d.HasArg("output") {
			output = json.RawMessage(option("output"))
		}
		cause := workflow.CauseError
		if d.HasArg("cause") {
			cause = workflow.Cause(option("cause"))
		}
		return workflow.ActFailed{Task: task, Step: step, Attempt: attempt, Cause: cause, Message: text, Final: d.HasArg("final"), Output: output}
	case "cancelled":
		return workflow.ActFailed{Task: task, Step: step, Attempt: attempt, Cause: workflow.CauseCancelled, Message: "context canceled"}
	case "asks":
		return workflow.ActAwaitsOperator{Task: task, Step: step, Attempt: attempt, Message: text}
	case "records":
		return workflow.ActRecorded{Task: task, Step: step, Attempt: attempt, Undo: json.RawMessage(text), Adopted: d.HasArg("adopted")}
	case "says":
		return workflow.ActProgressed{Task: task, Step: step, Attempt: attempt, Message: text}
	case "undone":
		in := workflow.UndoDone{Task: task, Step: step}
		if d.HasArg("kept") {
			in.KeptReason = text
		}
		return in
	case "undo-failed":
		return workflow.UndoErrored{Task: task, Step: step, Message: text, Final: d.HasArg("final")}
	case "handled":
		return workflow.HandlerDone{Handler: task, Task: option("task"), Error: text}
	case "verified":
		for _, arg := range d.CmdArgs {
			if len(arg.Vals) == 0 {
				gone = append(gone, workflow.Gone{Task: arg.Key, Reason: text})
			}
		}
		return workflow.VerifyDone{Gone: gone}
	case "pause":
		return workflow.PauseRun{Reason: text}
	case "resume":
		return workflow.ResumeRun{Reason: text, ProcessDied: d.HasArg("dead")}
	case "abort":
		return workflow.AbortRun{Reason: text, Rollback: d.HasArg("rollback")}
	case "hold":
		return workflow.HoldTask{Task: task, Reason: text}
	case "release":
		return workflow.ReleaseTask{Task: task, Reason: text}
	case "decide":
		in := workflow.Decision{Task: task, Action: workflow.Action(word(1)), Output: document("output"), With: document("with")}
		if in.Output == nil && in.With == nil {
			in.Reason = text
		}
		if d.HasArg("question") {
			d.ScanArgs(t, "question", &in.Question)
		}
		return in
	default:
		d.Fatalf(t, "no such command: %s", d.Cmd)
		return nil
	}
}

// define builds the spec of a manifest, and prints all problems.
func define(t *testing.T, d *datadriven.TestData, b *strings.Builder) *workflow.Definition {
	t.Helper()
	var spec v1alpha1.WorkflowRunSpec
	if err := yaml.UnmarshalStrict([]byte(d.Input), &spec); err != nil {
		d.Fatalf(t, "%v", err)
	}
	o := workflow.Options{Name: "story", Kind: kind}
	if d.HasArg("default") {
		var policy string
		d.ScanArgs(t, "default", &policy)
		o.DefaultPolicy = v1alpha1.FailurePolicy(policy)
	}
	definition, problems := workflow.Build(&spec, o)
	for _, p := range problems {
		if p.Warning {
			bullet(b, "warning: %s", p)
		} else {
			bullet(b, "%s", p)
		}
	}
	if len(problems) == 0 {
		bullet(b, "valid")
	}
	return definition
}

// kind returns a kind of task: Do and Exec accept any input but {bad: ...}, Hold holds something during the run,
// Release releases the hold of the task that it names, Keep has no inverse.
func kind(name string) (workflow.KindInfo, bool) {
	info := workflow.KindInfo{Holds: name == "Hold", Interactive: name == "Ask", Validate: func(with json.RawMessage) []workflow.Problem {
		if strings.Contains(string(with), `"bad"`) {
			return []workflow.Problem{{Field: "bad", Message: "it is not known", Remedy: "remove it"}}
		}
		return nil
	}}
	if name == "Release" {
		info.Releases = func(with json.RawMessage) string {
			var w struct{ Task string }
			_ = json.Unmarshal(with, &w)
			return w.Task
		}
	}
	if name == "Keep" {
		info.Irreversible = func(json.RawMessage) bool { return true }
	}
	return info, slices.Contains([]string{"Do", "Ask", "Exec", "Hold", "Release", "Keep"}, name)
}

// eventText describes an event in one line.
func eventText(e workflow.Event, now time.Time) string {
	out := strings.TrimPrefix(fmt.Sprintf("%T", e), "workflow.")
	switch e := e.(type) {
	case workflow.Defined:
		return fmt.Sprintf("%s part %d of %d, %d tasks", out, e.Part+1, e.Of, len(e.Tasks))
	case workflow.Started:
		if !e.Deadline.IsZero() {
			out += " deadline in " + e.Deadline.Sub(now).String()
		}
		return out
	case workflow.Migrated:
		return out
	}
	data, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return err.Error()
	}
	for _, at := range []string{"retryAt", "timeoutAt", "totalAt"} {
		if text, ok := fields[at].(string); ok {
			when, err := time.Parse(time.RFC3339Nano, text)
			if err != nil {
				return err.Error()
			}
			fields[strings.TrimSuffix(at, "At")+"In"] = when.Sub(now).String()
			delete(fields, at)
		}
	}
	keys := []string{"task", "step", "handler", "attempt", "question", "action", "why", "verdict", "policy", "phase", "cause"}
	for key := range fields {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys[10:])
	for _, key := range keys {
		v, ok := fields[key]
		switch text, err := json.Marshal(v); {
		case !ok || key == "attempt" && fmt.Sprint(v) == "1":
		case key == "task" && out != "HandlerStarted" && out != "HandlerEnded":
			out += " " + fmt.Sprint(v)
		case err != nil:
			return err.Error()
		default:
			out += fmt.Sprintf(" %s=%s", key, strings.Trim(string(text), `"`))
		}
	}
	return out
}

func duration(t *testing.T, d *datadriven.TestData, key string) time.Duration {
	t.Helper()
	var text string
	d.ScanArgs(t, key, &text)
	out, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%s: %v", key, err)
	}
	return out
}

func bullet(b *strings.Builder, format string, args ...any) {
	fmt.Fprintln(b, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}
