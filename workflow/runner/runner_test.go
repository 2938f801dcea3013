package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
	"scute.dev/workflow/task"
)

// probe is a kind that does what its inputs say, and remembers what was done.
type probe struct {
	mu   sync.Mutex
	done []string
	fail map[string]int // attempts that fail
}

type probeWith struct {
	Output json.RawMessage `json:"output,omitempty"`
	Say    string          `json:"say,omitempty"`
	Block  bool            `json:"block,omitempty"`
	Ask    bool            `json:"ask,omitempty"`
}

func (p *probe) Validate(json.RawMessage) []workflow.Problem { return nil }

func (p *probe) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	var with probeWith
	if len(c.With) > 0 {
		if err := json.Unmarshal(c.With, &with); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	p.done = append(p.done, c.Task+with.Say)
	fail := p.fail[c.Task] > 0
	p.fail[c.Task]--
	p.mu.Unlock()
	switch {
	case with.Block:
		<-ctx.Done()
		return nil, ctx.Err()
	case with.Ask:
		return nil, &task.DecisionError{Why: "is it all right?"}
	case fail:
		return nil, errors.New("it does not work")
	}
	return with.Output, c.Prepare(ctx, "undo "+c.Task, false)
}

func (p *probe) Undo(_ context.Context, c *task.Call) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = append(p.done, fmt.Sprintf("-%s %s", c.Task, c.Undo))
	return nil
}

func open(t *testing.T) *eventlog.Log {
	t.Helper()
	log, err := eventlog.OpenEmbedded(t.Context(), eventlog.EmbeddedOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

func build(t *testing.T, manifest string) *workflow.Definition {
	t.Helper()
	var spec v1alpha1.WorkflowSpec
	if err := yaml.UnmarshalStrict([]byte(manifest), &spec); err != nil {
		t.Fatal(err)
	}
	_ = apiextensionsv1.JSON{}
	d, problems := workflow.Build(&spec, workflow.Options{Name: "test", Kind: func(name string) (workflow.KindInfo, bool) {
		return workflow.KindInfo{}, name == "Probe"
	}})
	if d == nil {
		t.Fatal(problems)
	}
	return d
}

func drive(t *testing.T, log *eventlog.Log, p *probe, id string, d *workflow.Definition) *workflow.State {
	t.Helper()
	r := &runner.Runner{
		Log: log, Incarnation: "one", Logger: slog.New(slog.DiscardHandler),
		Kinds: func(context.Context, workflow.Header) (task.Kinds, error) { return task.Kinds{"Probe": p}, nil },
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := r.Request(ctx, id, "user/test", d); err != nil {
		t.Fatal(err)
	}
	if err := r.Drive(ctx, id); err != nil {
		t.Fatal(err)
	}
	s, _, err := r.State(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDrive(t *testing.T) {
	log := open(t)
	p := &probe{fail: map[string]int{"b": 1}}
	s := drive(t, log, p, "run/1", build(t, `
tasks:
- {name: a, kind: Probe, with: {output: {version: "1.2"}}}
- {name: b, kind: Probe, needs: [a], with: {say: "${tasks.a.output.version}"}, retry: {max: 1, delay: 10ms}}
- {name: c, kind: Probe, needs: [{task: b, on: Failure}]}
`))
	t.Log(workflow.Explain(s))
	if got := workflow.CurrentPhase(s); got != v1alpha1.RunSucceeded {
		t.Fatalf("%s: %+v", got, workflow.Status(s))
	}
	t.Log(p.done)
}

func TestRollback(t *testing.T) {
	log := open(t)
	p := &probe{fail: map[string]int{"c": 1}}
	s := drive(t, log, p, "run/1", build(t, `
failurePolicy: Rollback
tasks:
- {name: a, kind: Probe}
- {name: b, kind: Probe, needs: [a]}
- {name: c, kind: Probe, needs: [b]}
`))
	if got := workflow.CurrentPhase(s); got != v1alpha1.RunRolledBack {
		t.Fatalf("%s: %+v", got, workflow.Status(s))
	}
	t.Log(p.done)
}
