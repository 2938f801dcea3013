package run

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
)

// Report is a run in JSON, for programs. Its fields are stable, and all of them are always present.
type Report struct {
	Name       string            `json:"name"`
	Phase      v1alpha1.RunPhase `json:"phase"`
	RunID      string            `json:"runID"`
	StartedAt  *time.Time        `json:"startedAt"`
	FinishedAt *time.Time        `json:"finishedAt"`
	Tasks      []TaskReport      `json:"tasks"`
}

// TaskReport is one task of a Report.
type TaskReport struct {
	Name       string             `json:"name"`
	Kind       string             `json:"kind"`
	Phase      v1alpha1.TaskPhase `json:"phase"`
	Verdict    v1alpha1.Verdict   `json:"verdict"`
	Attempts   int                `json:"attempts"`
	Question   int                `json:"question"` // 0 if the task asks none
	StartedAt  *time.Time         `json:"startedAt"`
	FinishedAt *time.Time         `json:"finishedAt"`
	Message    string             `json:"message"`
	Output     json.RawMessage    `json:"output"`
}

// Report returns the run for programs.
func (r *Run) Report() Report {
	out := Report{
		Name: r.Name, Phase: r.Phase(), RunID: r.ID,
		StartedAt: exact(r.Status.StartedAt), FinishedAt: exact(r.Status.FinishedAt), Tasks: []TaskReport{},
	}
	for _, t := range r.Tasks() {
		task := TaskReport{
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
