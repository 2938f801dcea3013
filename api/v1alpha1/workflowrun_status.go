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
	RunDegraded        RunPhase = "Degraded" // ended, but tasks were ignored or skipped by policy
	RunAborted         RunPhase = "Aborted"  // stopped by a failure; it can be resumed
	RunRollingBack     RunPhase = "RollingBack"
	RunRolledBack      RunPhase = "RolledBack"
	RunRollbackFailed  RunPhase = "RollbackFailed" // an undo failed; an operator must decide
	RunFailed          RunPhase = "Failed"         // ended, and it cannot be resumed
	RunStranded        RunPhase = "Stranded"       // this program lacks a kind of task that the run needs
)

// TaskPhase is the progress of a task.
// +kubebuilder:validation:Enum=Pending;Running;Retrying;Succeeded;Failed;Ignored;Skipped;Paused;Interrupted;Undoing;Undone;Kept;UndoFailed
type TaskPhase string

// The phases of a task.
const (
	TaskPending     TaskPhase = "Pending"
	TaskRunning     TaskPhase = "Running"
	TaskRetrying    TaskPhase = "Retrying" // an attempt failed; another one will start
	TaskSucceeded   TaskPhase = "Succeeded"
	TaskFailed      TaskPhase = "Failed"
	TaskIgnored     TaskPhase = "Ignored"
	TaskSkipped     TaskPhase = "Skipped"
	TaskPaused      TaskPhase = "Paused"
	TaskInterrupted TaskPhase = "Interrupted" // cancelled while running; it runs again on resume
	TaskUndoing     TaskPhase = "Undoing"
	TaskUndone      TaskPhase = "Undone"
	TaskKept        TaskPhase = "Kept" // a rollback kept its work, because it cannot be undone
	TaskUndoFailed  TaskPhase = "UndoFailed"
)

// Verdict is the effect of a task's final outcome on the tasks that depend on it and on the run.
// +kubebuilder:validation:Enum=Satisfied;Ignored;Handled;Blocking
type Verdict string

// The verdicts.
const (
	VerdictSatisfied Verdict = "Satisfied" // it succeeded
	VerdictIgnored   Verdict = "Ignored"   // it failed, and counts as a success
	VerdictHandled   Verdict = "Handled"   // it failed, and a branch of the graph handles the failure
	VerdictBlocking  Verdict = "Blocking"  // it failed, and ends the run or its branch
)

// WorkflowRunStatus is the state of the run in the event log.
type WorkflowRunStatus struct {
	// ObservedGeneration is the generation of the spec that the event log has recorded.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready, Reconciling, Stalled, and Throttled and Readable if they apply.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Phase is the phase of the run.
	// +optional
	Phase RunPhase `json:"phase,omitempty"`
	// Message describes the current state or the result in one sentence.
	// +optional
	Message string `json:"message,omitempty"`
	// Next is what a user can do now; empty if nothing is needed.
	// +optional
	Next string `json:"next,omitempty"`
	// RunID is the ID of the run in the event log.
	// +optional
	RunID string `json:"runID,omitempty"`
	// LogID is the ID of the event log to which logSequence refers.
	// +optional
	LogID string `json:"logID,omitempty"`
	// LogSequence is the sequence of the run's last commit that this status includes.
	// +optional
	LogSequence int64 `json:"logSequence,omitempty"`
	// StartedAt is when the run began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// FinishedAt is when the run ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Deadline is when the run times out.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`
	// Counts are the numbers of tasks by phase.
	// +optional
	Counts TaskCounts `json:"counts,omitzero"`
	// Progress is "succeeded/all".
	// +optional
	Progress string `json:"progress,omitempty"`
	// Tasks are at most 100 tasks: first those that need attention, then those in progress, then
	// those that ended last. The event log has all tasks.
	// +optional
	Tasks []TaskStatus `json:"tasks,omitempty"`
	// TasksOmitted is the number of tasks that are not in tasks.
	// +optional
	TasksOmitted int `json:"tasksOmitted,omitempty"`
}

// TaskCounts are numbers of tasks by phase.
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

// TaskStatus is the state of a task in the event log.
type TaskStatus struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Phase is the phase of the task.
	Phase TaskPhase `json:"phase"`
	// Verdict is set when the outcome is final.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`
	// Attempts is the number of started attempts.
	Attempts int `json:"attempts"`
	// Question is the number of the current wait for an operator's decision, beginning with 1; 0 if
	// the task does not wait now.
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
	// Output is the recorded output of the task. The status omits an output of more than 1 KiB.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Output *apiextensionsv1.JSON `json:"output,omitempty"`
}
