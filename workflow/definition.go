package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/pause"
)

// Definition is a valid graph with all defaults and policies resolved. It is stored in the log, so
// later changes of the manifest or the daemon's flags do not affect a run.
type Definition struct {
	Header
	// Tasks are in manifest order, with pre hooks first and post hooks last.
	Tasks []Task `json:"tasks"`
}

// Header is a definition without its tasks.
type Header struct {
	Namespace string         `json:"namespace,omitempty"`
	Name      string         `json:"name"`
	Workflow  *NamedWorkflow `json:"workflow,omitempty"`
	// ServiceAccount is the name of the account whose permissions the tasks use in the daemon.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// Policy applies only when the deadline passes, because tasks have their own resolved policies.
	// Rollback then rolls the run back, and any other policy aborts it.
	Policy    v1alpha1.FailurePolicy `json:"policy"`
	Deadline  Duration               `json:"deadline,omitzero"`
	OnFailure []Step                 `json:"onFailure,omitempty"`
}

// NamedWorkflow names one of scute's workflows and its parameters.
type NamedWorkflow struct {
	Name   string          `json:"name"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Stage divides the graph: a task starts only after all tasks of lower stages have ended.
type Stage int

// The stages.
const (
	StagePre Stage = iota
	StageMain
	StagePost
)

// Task is a node of the graph.
type Task struct {
	Name  string `json:"name"`
	Stage Stage  `json:"stage,omitempty"`
	// Steps run in order: before hooks, the task's own step (with an empty name), after hooks.
	Steps []Step        `json:"steps"`
	Needs []Need        `json:"needs,omitempty"`
	Join  v1alpha1.Join `json:"join,omitempty"`
	// PolicySource is "task", "type" (of the applied objects), "kind", "workflow", "flag" or "default".
	Policy       v1alpha1.FailurePolicy `json:"policy"`
	PolicySource string                 `json:"policyFrom"`

	PointOfNoReturn bool `json:"pointOfNoReturn,omitempty"`
	Always          bool `json:"always,omitempty"`
	AtMostOnce      bool `json:"atMostOnce,omitempty"`
}

// ownPolicyText describes in a sentence the failure policy of the task, its kind or its type. It
// returns "" if the task has none of these, so that the policy of the run applies.
func (t *Task) ownPolicyText() string {
	switch t.PolicySource {
	case "task":
		return fmt.Sprintf("its own failure policy %s", t.Policy)
	case "kind":
		return fmt.Sprintf("the failure policy %s from spec.policies for its kind", t.Policy)
	case "type":
		return fmt.Sprintf("the failure policy %s from spec.policies for the type of its object", t.Policy)
	default:
		return ""
	}
}

// OwnStep returns the index of the task's own step.
func (t *Task) OwnStep() int {
	return max(stepNamed(t.Steps, ""), 0)
}

// stepNamed returns the index of a step, or -1.
func stepNamed(steps []Step, name string) int {
	return slices.IndexFunc(steps, func(s Step) bool { return s.Name == name })
}

// Kind returns the kind of the task's own step.
func (t *Task) Kind() string { return t.Steps[t.OwnStep()].Kind }

// Step is a task's own step or one of its hooks.
type Step struct {
	// Name is empty for the task's own step, and "before/NAME" or "after/NAME" for a hook.
	Name string          `json:"name,omitempty"`
	Kind string          `json:"kind"`
	With json.RawMessage `json:"with,omitempty"`
	Undo *Undo           `json:"undo,omitempty"` // nil means the kind's built-in inverse
	// Holds is set if the step holds something, such as a pause, until the run ends in any way.
	Holds bool `json:"holds,omitempty"`
	// Releases names the task whose hold this step releases. It is derived from the inputs, so the
	// hash of the definition does not include it.
	Releases     string   `json:"releases,omitempty"`
	Retry        Retry    `json:"retry,omitzero"`
	Timeout      Duration `json:"timeout,omitzero"`
	TotalTimeout Duration `json:"totalTimeout,omitzero"`
	// Default is set on a failure handler that is not from the manifest. The hash of the definition
	// does not include it.
	Default bool `json:"default,omitempty"`

	// removed is set if a migration removed the step, which is then kept only for its undo.
	removed bool
}

// Undo replaces the built-in inverse of a step's kind.
type Undo struct {
	None bool            `json:"none,omitempty"`
	Kind string          `json:"kind,omitempty"`
	With json.RawMessage `json:"with,omitempty"`
}

// Need is an edge from another task.
type Need struct {
	Task     string      `json:"task"`
	On       v1alpha1.On `json:"on"`
	Optional bool        `json:"optional,omitempty"`
	Timeout  Duration    `json:"timeout,omitzero"`
}

// Retry configures the number of attempts and the delay between them.
type Retry struct {
	Max      int      `json:"max,omitempty"`
	Delay    Duration `json:"delay,omitzero"`
	Factor   float64  `json:"factor,omitempty"`
	MaxDelay Duration `json:"maxDelay,omitzero"`
	Recreate bool     `json:"recreate,omitempty"`
}

// From the fourth retry on, the delay is at least minDelay. Otherwise a task that fails immediately
// would fill the log.
const (
	quickRetries = 3
	minDelay     = time.Second
)

// DelayBefore returns the delay before the n-th retry (1, 2, ...).
func (r Retry) DelayBefore(n int) time.Duration {
	wait, limit := float64(r.Delay), float64(r.MaxDelay)
	for i := 1; i < n && wait < limit; i++ {
		wait *= r.Factor
	}
	delay := time.Duration(min(wait, limit))
	if n > quickRetries {
		return max(delay, minDelay)
	}
	return delay
}

// Duration is a time.Duration encoded as text, such as "5m0s".
type Duration = pause.Duration

// Hash returns the SHA-256 of the canonical definition in hexadecimal.
func (d *Definition) Hash() string {
	canonical := Definition{Header: d.Header, Tasks: slices.Clone(d.Tasks)}
	canonical.OnFailure = slices.DeleteFunc(slices.Clone(d.OnFailure), func(s Step) bool { return s.Default })
	for i := range canonical.Tasks {
		canonical.Tasks[i] = withoutReleases(canonical.Tasks[i])
	}
	data, _ := json.Marshal(canonical) // only invalid raw JSON can fail, and Build has parsed it
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func withoutReleases(t Task) Task {
	if slices.ContainsFunc(t.Steps, func(s Step) bool { return s.Releases != "" || s.removed }) {
		t.Steps = slices.DeleteFunc(slices.Clone(t.Steps), func(s Step) bool { return s.removed })
		for n := range t.Steps {
			t.Steps[n].Releases = ""
		}
	}
	return t
}

// Problem is an error or a warning about a definition.
type Problem struct {
	// Task is empty if the problem is about the run.
	Task            string
	Field           string
	Message, Remedy string
	// Warning is set if the run may start nevertheless.
	Warning bool
}

// String returns the problem in one line.
func (p Problem) String() string {
	s := p.Field + ": "
	if p.Task != "" {
		s = fmt.Sprintf("task %q: %s", p.Task, s)
	}
	s += p.Message
	if p.Remedy != "" {
		s += ": " + p.Remedy
	}
	return s
}
