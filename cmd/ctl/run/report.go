package run

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/workflow"
)

// report is the JSON form of a run, for programs. Its fields are stable and always present.
type report struct {
	Name       string            `json:"name"`
	Phase      v1alpha1.RunPhase `json:"phase"`
	RunID      string            `json:"runID"`
	StartedAt  *time.Time        `json:"startedAt"`
	FinishedAt *time.Time        `json:"finishedAt"`
	Tasks      []taskReport      `json:"tasks"`
}

type taskReport struct {
	Name       string             `json:"name"`
	Kind       string             `json:"kind"`
	Phase      v1alpha1.TaskPhase `json:"phase"`
	Verdict    v1alpha1.Verdict   `json:"verdict"`
	Attempts   int                `json:"attempts"`
	Question   int                `json:"question"` // 0 if the task asks no question
	StartedAt  *time.Time         `json:"startedAt"`
	FinishedAt *time.Time         `json:"finishedAt"`
	Message    string             `json:"message"`
	Output     json.RawMessage    `json:"output"`
}

func (r *Run) report() report {
	out := report{
		Name: r.Name, Phase: r.Phase(), RunID: r.ID,
		StartedAt: exact(r.Status.StartedAt), FinishedAt: exact(r.Status.FinishedAt), Tasks: []taskReport{},
	}
	for _, t := range r.Tasks() {
		task := taskReport{
			Name: t.Name, Kind: t.Kind, Phase: t.Phase, Verdict: t.Verdict, Attempts: t.Attempts, Question: t.Question,
			StartedAt: exact(t.StartedAt), FinishedAt: exact(t.FinishedAt), Message: t.Message,
		}
		if t.Output != nil {
			task.Output = t.Output.Raw
		}
		out.Tasks = append(out.Tasks, task)
	}
	return out
}

func exact(t *metav1.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	at := t.UTC().Truncate(time.Millisecond)
	return &at
}

// Documents returns the run as a document.
func (f *Fold) Documents(k *kit.Kit) []kit.Document {
	r := f.Refresh()
	d := kit.Document{
		Kind: "run", Namespace: r.Namespace, Name: r.Name, ID: r.ID, Phase: string(r.Phase()), Message: r.Status.Message, Next: r.Status.Next,
		Progress: r.Status.Progress + " tasks", Began: "requested", Since: r.CreatedAt, Actions: Actions(r),
	}
	switch {
	case isFinished(r.Phase()):
		d.End(r.Status.FinishedAt)
	case isIdle(r.Phase()), r.Phase() == v1alpha1.RunPartiallyPaused:
		d.State, d.Commands = kit.Waiting, PageCommands(k, r)
	}
	return []kit.Document{d}
}

// PageCommands returns the commands that show and continue a run. A page knows the log only by its
// location, so it treats each run in a folder as a local run.
func PageCommands(k *kit.Kit, r *Run) []string {
	shown := *r
	shown.Local = k.Flags.Dir != ""
	return nextCommands(k, &shown)
}

// Actions returns what users can do with a run now.
func Actions(r *Run) []kit.Action {
	a := kit.Action{Do: "pause", Kind: "run", Namespace: r.Namespace, Name: r.Name, ID: r.ID}
	switch now := workflow.Summarize(r.State); {
	case isFinished(r.Phase()), r.Phase() == v1alpha1.RunStranded:
		return nil
	case now.Paused, r.Phase() == v1alpha1.RunAborted:
		a.Do = "resume"
	case now.Stopping: // the run is rolling back, or waits for a decision about the rollback
		return nil
	}
	return []kit.Action{a}
}

// Err returns nil, because Apply returns every error.
func (*Fold) Err() error { return nil }

// Object returns the report of the run.
func (f *Fold) Object() (name string, object any) { return "run", f.Refresh().report() }

// Content returns the visible state of the run: its definition, its status and its tasks.
func (f *Fold) Content() any {
	r := f.Refresh()
	return struct {
		Definition string                     `json:"definition"`
		Status     v1alpha1.WorkflowRunStatus `json:"status"`
		Report     report                     `json:"report"`
	}{f.State.Hash, r.Status, r.report()}
}

// Describe returns the description of the run.
func (f *Fold) Describe(v kit.View) []string { return output{v}.describe(f.Refresh()) }
