package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunPhase is the progress of a run.
// +kubebuilder:validation:Enum=Pending;Running;PartiallyPaused;Paused;Succeeded;Degraded;Aborted;RollingBack;RolledBack;RollbackFailed;Failed;Stranded
type RunPhase string

// The phases of a run.
const (
	RunPending         RunPhase = "Pending"
	RunRunning         RunPhase = "Running"
	RunPartiallyPaused RunPhase = "PartiallyPaused" // a branch waits for an operator, others run
	RunPaused          RunPhase = "Paused"          // nothing continues without an operator
	RunSucceeded       RunPhase = "Succeeded"
	RunDegraded        RunPhase = "Degraded" // done, but something was ignored or skipped by policy
	RunAborted         RunPhase = "Aborted"  // stopped by a failure; it can be resumed
	RunRollingBack     RunPhase = "RollingBack"
	RunRolledBack      RunPhase = "RolledBack"
	RunRollbackFailed  RunPhase = "RollbackFailed" // an undo failed; an operator decides
	RunFailed          RunPhase = "Failed"         // over, and it cannot be resumed
	RunStranded        RunPhase = "Stranded"       // this program does not know what the run needs
)

// TaskPhase is the progress of a task.
// +kubebuilder:validation:Enum=Pending;Running;Retrying;Succeeded;Failed;Ignored;Skipped;Paused;Interrupted;Undoing;Undone;Kept;UndoFailed
type TaskPhase string

// The phases of a task.
const (
	TaskPending     TaskPhase = "Pending"
	TaskRunning     TaskPhase = "Running"
	TaskRetrying    TaskPhase = "Retrying" // an attempt failed, the next one is due at a time
	TaskSucceeded   TaskPhase = "Succeeded"
	TaskFailed      TaskPhase = "Failed"
	TaskIgnored     TaskPhase = "Ignored"
	TaskSkipped     TaskPhase = "Skipped"
	TaskPaused      TaskPhase = "Paused"
	TaskInterrupted TaskPhase = "Interrupted" // cancelled in flight; it reruns on resume
	TaskUndoing     TaskPhase = "Undoing"
	TaskUndone      TaskPhase = "Undone"
	TaskKept        TaskPhase = "Kept" // a rollback left what it did: nothing says how to undo it
	TaskUndoFailed  TaskPhase = "UndoFailed"
)

// Verdict is what a final outcome means for the tasks that depend on it and for the run.
// +kubebuilder:validation:Enum=Satisfied;Ignored;Handled;Blocking
type Verdict string

// The verdicts.
const (
	VerdictSatisfied Verdict = "Satisfied" // it succeeded
	VerdictIgnored   Verdict = "Ignored"   // it failed, and counts as if it had succeeded
	VerdictHandled   Verdict = "Handled"   // it failed, and a branch of the graph takes care of it
	VerdictBlocking  Verdict = "Blocking"  // it failed, and ends the run or its branch
)

// WorkflowRunStatus is the log's view of the run.
type WorkflowRunStatus struct {
	// ObservedGeneration is the generation of the spec that the log has taken note of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Phase of the run.
	// +optional
	Phase RunPhase `json:"phase,omitempty"`
	// Message says in a sentence what happens now, or how it ended.
	// +optional
	Message string `json:"message,omitempty"`
	// Next is what a human can do about it, if anything.
	// +optional
	Next string `json:"next,omitempty"`
	// RunID names the run in the log.
	// +optional
	RunID string `json:"runID,omitempty"`
	// LogID is the ID of the event log that logSequence counts in.
	// +optional
	LogID string `json:"logID,omitempty"`
	// LogSequence is the log's sequence that this status was folded up to.
	// +optional
	LogSequence int64 `json:"logSequence,omitempty"`
	// StartedAt is when the run was first taken up.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// FinishedAt is when it ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Deadline of the run.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`
	// Counts of all tasks.
	// +optional
	Counts TaskCounts `json:"counts,omitzero"`
	// Progress is "succeeded/all", for the printer column.
	// +optional
	Progress string `json:"progress,omitempty"`
	// Tasks, at most 100 of them: those that need attention first, then those in flight, then the latest to end. The
	// log has all.
	// +optional
	Tasks []TaskStatus `json:"tasks,omitempty"`
	// TasksOmitted is how many tasks the list leaves out.
	// +optional
	TasksOmitted int `json:"tasksOmitted,omitempty"`
}

// TaskCounts count tasks by phase.
type TaskCounts struct {
	Tasks     int `json:"tasks"`
	Succeeded int `json:"succeeded"`
	Ignored   int `json:"ignored"`
	Skipped   int `json:"skipped"`
	Failed    int `json:"failed"`
	Paused    int `json:"paused"`
	Running   int `json:"running"`
	Undone    int `json:"undone"`
}

// TaskStatus is the log's view of one task.
type TaskStatus struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Phase of the task.
	Phase TaskPhase `json:"phase"`
	// Verdict, once the outcome is final.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`
	// Attempts that were started.
	Attempts int `json:"attempts"`
	// Question that the task asks an operator: how often it has begun to wait for a decision. 0 if it does not wait.
	// +optional
	Question int `json:"question,omitempty"`
	// StartedAt is when the first attempt started.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// FinishedAt is when the outcome became final.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Message explains the phase.
	// +optional
	Message string `json:"message,omitempty"`
	// Output that the task recorded. Status lists leave out what is larger than 1 KiB.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Output *apiextensionsv1.JSON `json:"output,omitempty"`
}
