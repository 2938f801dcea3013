package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AdoptedAnnotation on a WorkflowRun is the digest of the events that clients wrote to the log
// about its run, such as changed inputs, outputs and definitions. If there are such events, the
// daemon starts no task of the run without this annotation.
const AdoptedAnnotation = "scute.dev/adopted"

// WorkflowRunSpec is a run: either the tasks of a graph, or a named workflow with its parameters. Only suspend can be
// changed: the log records all other fields when the run begins.
//
// +kubebuilder:validation:XValidation:rule="has(self.workflow) != (has(self.tasks) && size(self.tasks) > 0)",message="set either tasks or workflow"
// +kubebuilder:validation:XValidation:rule="!has(self.tasks) || self.tasks == self.tasks",fieldPath=".tasks",message="an item of needs must not be null"
// +kubebuilder:validation:XValidation:rule="has(self.failurePolicy) == has(oldSelf.failurePolicy) && (!has(self.failurePolicy) || self.failurePolicy == oldSelf.failurePolicy)",fieldPath=".failurePolicy",message="failurePolicy cannot be changed: create another WorkflowRun, or migrate the run to another definition with scutectl migrate"
// +kubebuilder:validation:XValidation:rule="has(self.policies) == has(oldSelf.policies) && (!has(self.policies) || self.policies == oldSelf.policies)",fieldPath=".policies",message="policies cannot be changed: create another WorkflowRun, or migrate the run to another definition with scutectl migrate"
// +kubebuilder:validation:XValidation:rule="has(self.deadline) == has(oldSelf.deadline) && (!has(self.deadline) || self.deadline == oldSelf.deadline)",fieldPath=".deadline",message="deadline cannot be changed: create another WorkflowRun, or migrate the run to another definition with scutectl migrate"
// +kubebuilder:validation:XValidation:rule="has(self.hooks) == has(oldSelf.hooks) && (!has(self.hooks) || self.hooks == oldSelf.hooks)",fieldPath=".hooks",message="hooks cannot be changed: create another WorkflowRun, or migrate the run to another definition with scutectl migrate"
// +kubebuilder:validation:XValidation:rule="has(self.serviceAccountName) == has(oldSelf.serviceAccountName) && (!has(self.serviceAccountName) || self.serviceAccountName == oldSelf.serviceAccountName)",fieldPath=".serviceAccountName",message="serviceAccountName cannot be changed: create another WorkflowRun, or migrate the run to another definition with scutectl migrate"
// +kubebuilder:validation:XValidation:rule="has(self.workflow) == has(oldSelf.workflow) && (!has(self.workflow) || self.workflow == oldSelf.workflow)",fieldPath=".workflow",message="workflow cannot be changed: create another WorkflowRun, or migrate the run to another definition with scutectl migrate"
// +kubebuilder:validation:XValidation:rule="has(self.tasks) == has(oldSelf.tasks) && (!has(self.tasks) || self.tasks == oldSelf.tasks)",fieldPath=".tasks",message="tasks cannot be changed: create another WorkflowRun, or migrate the run to another definition with scutectl migrate"
type WorkflowRunSpec struct {
	// FailurePolicy is applied when a task fails permanently, unless the task or policies set another one. Default:
	// --default-failure-policy of the daemon or of scutectl, SCUTE_DEFAULT_FAILURE_POLICY, or Abort, in this order.
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
	// Policies are defaults for all tasks of a kind, and for all tasks that apply objects of a type.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=64
	Policies []KindPolicy `json:"policies,omitempty"`
	// Deadline bounds the duration of the run. Time while the run is paused or aborted does not count.
	// +optional
	Deadline *Duration `json:"deadline,omitempty"`
	// Suspend prevents further tasks from starting while it is true. Running tasks end.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// Hooks run before and after all tasks, and after a failure.
	// +optional
	Hooks RunHooks `json:"hooks,omitzero"`
	// ServiceAccountName is the ServiceAccount, in the WorkflowRun's namespace, whose permissions
	// the tasks have. Only the daemon uses it. A local run uses the operator's kubeconfig.
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// Workflow is a named workflow.
	// +optional
	Workflow *NamedWorkflow `json:"workflow,omitempty"`
	// Tasks are the nodes of the graph.
	// +optional
	// +kubebuilder:validation:MaxItems=10000
	Tasks []TaskSpec `json:"tasks,omitempty"`
}

// FailurePolicy is what happens when a task fails permanently.
//
//   - Abort: no further task starts, running tasks are cancelled and run again on resume, and nothing is undone.
//   - Rollback: the tasks of the run are undone, in reverse order.
//   - Ignore: the task counts as if it had succeeded.
//   - IgnoreChildren: tasks that need the task's success are skipped, all others continue.
//   - Pause: the task, and the tasks that depend on it, wait for an operator. Other branches continue.
//
// +kubebuilder:validation:Enum=Abort;Rollback;Ignore;IgnoreChildren;Pause
type FailurePolicy string

// The failure policies.
const (
	Abort          FailurePolicy = "Abort"
	Rollback       FailurePolicy = "Rollback"
	Ignore         FailurePolicy = "Ignore"
	IgnoreChildren FailurePolicy = "IgnoreChildren"
	FailurePause   FailurePolicy = "Pause"
)

// KindPolicy contains the defaults of all tasks of a kind, or of all tasks that apply objects of a
// type. The defaults of the type have precedence.
type KindPolicy struct {
	// Kind of the tasks, such as Exec; or the type of the object that a task of the kind Apply
	// applies, such as Deployment or Deployment.apps. If the task applies several objects, all must
	// be of the type; expand creates separate tasks for them. Write Job.batch for the type Job,
	// because Job is a kind of task.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Kind string `json:"kind"`
	// FailurePolicy of these tasks.
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
	// Retry of these tasks.
	// +optional
	Retry *Retry `json:"retry,omitempty"`
	// Timeout of one attempt of these tasks.
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`
	// TotalTimeout of all attempts of these tasks, and the waits between them.
	// +optional
	TotalTimeout *Duration `json:"totalTimeout,omitempty"`
}

// RunHooks are lists of hooks. The hooks of a list run one after the other.
type RunHooks struct {
	// Pre run before all tasks.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Pre []HookSpec `json:"pre,omitempty"`
	// Post run after all tasks, unless a failure ended the run.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Post []HookSpec `json:"post,omitempty"`
	// OnFailure run once for each task and each undo that failed permanently, and once when the run
	// ends by a failure or is aborted. A failure of these hooks is recorded and changes nothing.
	// They have no retry, no totalTimeout and no undo.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	OnFailure []HookSpec `json:"onFailure,omitempty"`
}

// NamedWorkflow is a workflow that is built into scute.
type NamedWorkflow struct {
	// Name of the workflow.
	// +required
	// +kubebuilder:validation:Enum=management-create;management-upgrade;management-delete;workload-create;workload-upgrade;workload-delete
	Name string `json:"name"`
	// Params of the workflow.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Params *apiextensionsv1.JSON `json:"params,omitempty"`
	// Hooks run before and after single tasks of the workflow.
	// +optional
	Hooks TaskHooks `json:"hooks,omitzero"`
}

// TaskHooks are hooks of the tasks of a named workflow, by the names of these tasks.
type TaskHooks struct {
	// Before are hooks that run before a task. If a hook fails, the task fails without having started.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(task, task.matches('^[A-Za-z]+([-.][A-Za-z]+)+$'))",message="must be keyed by names of tasks, such as post-create"
	Before map[string][]HookSpec `json:"before,omitempty"`
	// After are hooks that run after a task. The task succeeds when all of them have succeeded.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(task, task.matches('^[A-Za-z]+([-.][A-Za-z]+)+$'))",message="must be keyed by names of tasks, such as post-create"
	After map[string][]HookSpec `json:"after,omitempty"`
}

// StepSpec is the specification of a task's or hook's work.
type StepSpec struct {
	// Name, unique in its list.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Kind of the task: Apply, Approve, Delete, Diagnose, Exec, HTTP, Job, Move, Pause, Providers, Resume or Wait.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// With are the inputs, which depend on the kind. A string may contain ${tasks.NAME.output.PATH}.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	With *apiextensionsv1.JSON `json:"with,omitempty"`
	// Undo replaces the undo of the kind: None, {command: [...]}, or {kind: KIND, with: {...}}.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Undo *apiextensionsv1.JSON `json:"undo,omitempty"`
	// Retry after a failed attempt. Default: none.
	// +optional
	Retry *Retry `json:"retry,omitempty"`
	// Timeout of one attempt. An attempt that times out may be retried.
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`
	// TotalTimeout of all attempts and the waits between them. After it the task fails permanently.
	// +optional
	TotalTimeout *Duration `json:"totalTimeout,omitempty"`
}

// HookSpec is a step that runs before or after another step.
type HookSpec struct {
	StepSpec `json:",inline"`
}

// TaskSpec is one node of the graph.
type TaskSpec struct {
	StepSpec `json:",inline"`
	// Needs are the edges to the tasks that this task waits for: a name, or {task, on, optional, timeout}.
	// +optional
	// +kubebuilder:validation:MaxItems=10000
	Needs []Need `json:"needs,omitempty"`
	// Join of the optional edges: All waits until every edge is decided, Any until the first edge is satisfied.
	// Default: All.
	// +optional
	// +kubebuilder:validation:Enum=All;Any
	Join Join `json:"join,omitempty"`
	// Before are hooks that run before the task. If a hook fails, the task fails without having started.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Before []HookSpec `json:"before,omitempty"`
	// After are hooks that run after the task. The task succeeds when all of them have succeeded.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	After []HookSpec `json:"after,omitempty"`
	// FailurePolicy of this task.
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
	// PointOfNoReturn prevents a rollback of the run after this task has started.
	// +optional
	PointOfNoReturn bool `json:"pointOfNoReturn,omitempty"`
	// Always runs the task on every resume, even if it has succeeded.
	// +optional
	Always bool `json:"always,omitempty"`
	// AtMostOnce waits for an operator's decision if the task was started and its outcome is
	// unknown. By default the task runs again.
	// +optional
	AtMostOnce bool `json:"atMostOnce,omitempty"`
}

// Join is how the optional edges of a task are combined.
type Join string

// The joins.
const (
	JoinAll Join = "All"
	JoinAny Join = "Any"
)

// On is the outcome of a task that satisfies an edge.
// +kubebuilder:validation:Enum=Success;Failure;Completion
type On string

// The outcomes.
const (
	// OnSuccess is satisfied if the task succeeded, or if its failure is ignored.
	OnSuccess On = "Success"
	// OnFailure is satisfied if the task failed permanently.
	OnFailure On = "Failure"
	// OnCompletion is satisfied if the task ended with any outcome.
	OnCompletion On = "Completion"
)

// Need is an edge to another task. A string in a manifest means that the success of this task is required.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:pruning:PreserveUnknownFields
type Need struct {
	// Task is the name of the needed task.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Task string `json:"task"`
	// On is Success, Failure or Completion. Default: Success.
	On On `json:"on,omitempty"`
	// Optional edges are alternatives: one satisfied edge is enough.
	Optional bool `json:"optional,omitempty"`
	// Timeout begins when the needed task first starts. After it this edge has failed; the needed
	// task continues.
	Timeout *Duration `json:"timeout,omitempty"`
}

// Retry defines how often and when a failed attempt is retried.
type Retry struct {
	// Max is the maximum number of attempts after the first.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Max int `json:"max,omitempty"`
	// Delay before the second attempt. Default: 1s.
	// +optional
	Delay *Duration `json:"delay,omitempty"`
	// Factor by which the delay grows from attempt to attempt. Default: 2.
	// +optional
	// +kubebuilder:validation:Type=number
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Factor float64 `json:"factor,omitempty"`
	// MaxDelay bounds the delay. Default: 1m.
	// +optional
	MaxDelay *Duration `json:"maxDelay,omitempty"`
	// Recreate deletes what the failed attempt created, and waits until it is gone, before the next attempt.
	// +optional
	Recreate bool `json:"recreate,omitempty"`
}

// WorkflowRun is one execution of a graph of tasks.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=wfr,categories=scute
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Done",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.status.runID`,priority=1
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.next`,priority=1
type WorkflowRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec WorkflowRunSpec `json:"spec"`
	// +optional
	Status WorkflowRunStatus `json:"status,omitzero"`

	// Unreadable is the part of the object that could not be decoded. It is not a field of the resource.
	Unreadable `json:"-"`
}

// WorkflowRunList is a list of WorkflowRuns.
//
// +kubebuilder:object:root=true
type WorkflowRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []WorkflowRun `json:"items"`
}
