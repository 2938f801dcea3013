package local

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/test/assets"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
	"scute.dev/workflow/task"
)

const id = "default/story/1"

// report is the result of a run.
type report struct {
	Phase v1alpha1.RunPhase
	Tasks []ended
}

type ended struct {
	Name    string
	Phase   v1alpha1.TaskPhase
	Verdict v1alpha1.Verdict
	Message string
	Output  string
}

func (w *world) report(t *testing.T) report {
	t.Helper()
	r := report{}
	w.read(t, func(ctx context.Context, log *eventlog.Log) {
		s, _, err := (&runner.Runner{Log: log}).State(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		r.Phase = workflow.CurrentPhase(s)
		for i := range s.Tasks() {
			task := s.TaskStatus(i)
			e := ended{Name: task.Name, Phase: task.Phase, Verdict: task.Verdict, Message: task.Message}
			if task.Output != nil {
				e.Output = string(task.Output.Raw)
			}
			r.Tasks = append(r.Tasks, e)
		}
	})
	return r
}

// succeeded returns the keys of the steps whose success is in the log, and how often each has run so far.
func (w *world) succeeded(t *testing.T) map[string]int {
	t.Helper()
	ran := count(w.lines(t, "ran"))
	done := make(map[string]int)
	w.read(t, func(ctx context.Context, log *eventlog.Log) {
		records, err := log.Read(ctx, eventlog.Aggregate{Kind: eventlog.KindRun, ID: id}, 0)
		if err != nil {
			t.Fatal(err)
		}
		catalog := workflow.NewCatalog()
		for _, record := range records {
			events, err := record.Events()
			if err != nil {
				t.Fatal(err)
			}
			for _, ev := range events {
				fact, err := catalog.Decode(ev)
				if err != nil {
					t.Fatal(err)
				}
				if key := successOf(log.ID(), fact); key != "" {
					done[key] = ran[key]
				}
			}
		}
	})
	return done
}

// successOf returns the key of a step that succeeded or was undone according to an event.
func successOf(origin string, fact workflow.Event) string {
	key := func(name, step string) string {
		return (&task.Call{Run: id, Origin: origin, Task: name, Step: step}).Key()
	}
	switch e := fact.(type) {
	case workflow.StepSucceeded:
		return key(e.Task, e.Step)
	case workflow.TaskSucceeded:
		return key(e.Task, e.Step)
	case workflow.Undone:
		if e.NothingReason == "" {
			undo := task.Call{Run: id, Origin: origin, Task: e.Task, Step: e.Step, Undoing: true}
			return "undo:" + undo.Key()
		}
	}
	return ""
}

func (w *world) read(t *testing.T, fn func(context.Context, *eventlog.Log)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log, err := embedded.Open(ctx, embedded.Options{Dir: filepath.Join(w.dir, ".scute")})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	fn(ctx, log)
}

// faultctl builds faultctl once and returns its path.
func faultctl(t *testing.T) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var build = sync.OnceValues(func() (string, error) {
	bin, err := assets.Build(context.Background(), os.Stderr, assets.FaultyCtl)
	return filepath.Join(bin, "faultctl"), err
})
