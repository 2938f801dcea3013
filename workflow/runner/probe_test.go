package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/workflow"
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
	return buildWith(t, manifest, func(name string) (workflow.KindInfo, bool) { return workflow.KindInfo{}, name == "Probe" })
}

func buildWith(t *testing.T, manifest string, kind func(string) (workflow.KindInfo, bool)) *workflow.Definition {
	t.Helper()
	var spec v1alpha1.WorkflowSpec
	if err := yaml.UnmarshalStrict([]byte(manifest), &spec); err != nil {
		t.Fatal(err)
	}
	d, problems := workflow.Build(&spec, workflow.Options{Name: "test", Kind: kind})
	if d == nil {
		t.Fatal(problems)
	}
	return d
}
