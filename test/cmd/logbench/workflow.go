package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
	"scute.dev/workflow/task"
)

const (
	chainTasks  = 1_000
	fanoutTasks = 10_000
	flowRounds  = 7
)

// measureWorkflow measures the cost of the engine in addition to that of its log.
func measureWorkflow(ctx context.Context, b *bench) error {
	for _, shape := range []struct {
		name  string
		tasks int
		needs func(i int) []v1alpha1.Need
	}{
		{"chain", chainTasks, chain},
		{"fanout", fanoutTasks, fanout},
	} {
		b.say("%s of %d tasks", shape.name, shape.tasks)
		var ratios, rates, commits []float64
		for round := range flowRounds {
			r, err := runAgainstFloor(ctx, b, fmt.Sprintf("%s-%d", shape.name, round), graph(shape.tasks, shape.needs))
			if err != nil {
				return err
			}
			ratios = append(ratios, r.floor.Seconds()/r.run.Seconds())
			rates = append(rates, float64(shape.tasks)/r.run.Seconds())
			commits = append(commits, float64(r.commits)/float64(shape.tasks))
		}
		b.figure("workflow."+shape.name+".ratio", median(ratios), "ratio")
		b.figure("workflow."+shape.name+".rate", median(rates), "tasks/s")
		b.figure("workflow."+shape.name+".commits", median(commits), "commits/task")
	}
	if err := measureDecide(b); err != nil {
		return err
	}
	return measureRunReplay(ctx, b)
}

func chain(i int) []v1alpha1.Need {
	if i == 0 {
		return nil
	}
	return []v1alpha1.Need{{Task: name(i - 1)}}
}

func fanout(i int) []v1alpha1.Need {
	if i == 0 {
		return nil
	}
	return []v1alpha1.Need{{Task: name(0)}}
}

func name(i int) string { return fmt.Sprintf("task-%06d", i) }

func graph(n int, needs func(int) []v1alpha1.Need) *workflow.Definition {
	spec := &v1alpha1.WorkflowRunSpec{}
	for i := range n {
		t := v1alpha1.TaskSpec{Needs: needs(i)}
		t.Name, t.Kind = name(i), "Noop"
		spec.Tasks = append(spec.Tasks, t)
	}
	d, problems := workflow.Build(spec, workflow.Options{Name: "bench", Kind: func(string) (workflow.KindInfo, bool) { return workflow.KindInfo{}, true }})
	if d == nil {
		panic(fmt.Sprint("the benchmark's own graph is not valid: ", problems))
	}
	return d
}

// noop is a task that does nothing.
type noop struct{}

func (noop) Validate(json.RawMessage) []workflow.Problem { return nil }

func (noop) Run(context.Context, *task.Call) (json.RawMessage, error) { return nil, nil }

func (noop) Undo(context.Context, *task.Call) error { return nil }

// journal records the commits that are appended through it.
type journal struct {
	*eventlog.Log
	commits []eventlog.Commit
}

func (j *journal) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	r, err := j.Log.Append(ctx, c)
	if err == nil {
		j.commits = append(j.commits, c)
	}
	return r, err
}

type flow struct {
	run, floor time.Duration
	commits    int
}

// runAgainstFloor runs a workflow, and then appends the same commits, one after the other, without the engine.
func runAgainstFloor(ctx context.Context, b *bench, name string, d *workflow.Definition) (flow, error) {
	var f flow
	log, err := embedded.Open(ctx, embedded.Options{Dir: filepath.Join(b.dir, name)})
	if err != nil {
		return f, err
	}
	defer log.Close()
	j := &journal{Log: log}
	r := &runner.Runner{
		Log: j, Incarnation: "bench", Logger: slog.New(slog.DiscardHandler),
		Kinds: func(context.Context, workflow.Header) (task.Kinds, error) { return task.Kinds{"Noop": noop{}}, nil },
	}
	if err := r.Request(ctx, "run", "bench", d); err != nil {
		return f, err
	}
	asked := len(j.commits)
	start := time.Now()
	if err := r.Drive(ctx, "run"); err != nil {
		return f, err
	}
	f.run, f.commits = time.Since(start), len(j.commits)-asked
	if s, _, err := r.State(ctx, "run"); err != nil || workflow.CurrentPhase(s) != v1alpha1.RunSucceeded {
		return f, fmt.Errorf("the run did not succeed: %s, %w", workflow.CurrentPhase(s), err)
	}
	floor := eventlog.Aggregate{Kind: eventlog.KindRun, ID: "floor"}
	var seq uint64
	start = time.Now()
	for _, c := range j.commits[asked:] {
		c.Aggregate, c.Expected, c.ID = floor, seq, "floor/"+c.ID
		receipt, err := log.Append(ctx, c)
		if err != nil {
			return f, err
		}
		seq = receipt.Seq
	}
	f.floor = time.Since(start)
	return f, nil
}
