package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"scute.dev/api/v1alpha1"
)

// Definition is a valid graph, with all defaults set and all policies resolved. Build returns it.
// It is stored in the log: later changes of the manifest or of the daemon's flags do not affect a
// run.
type Definition struct {
	Header
	// Tasks are in the order of the manifest; pre hooks are first and post hooks last.
	Tasks []Task `json:"tasks"`
}

// Header is a definition without its tasks.
type Header struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Workflow is set for a named workflow of scute.
	Workflow *NamedWorkflow `json:"workflow,omitempty"`
	// ServiceAccount has the permissions that the tasks use in the daemon.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// Policy is the failure policy of the run, with the default filled in. The tasks have resolved
	// policies, so here it only determines what happens at the deadline: Rollback rolls the run
	// back, and any other policy aborts it.
	Policy   v1alpha1.FailurePolicy `json:"policy"`
	Deadline Duration               `json:"deadline,omitzero"`
	// OnFailure are the failure handlers.
	OnFailure []Step `json:"onFailure,omitempty"`
}

// NamedWorkflow is a named workflow of scute, with its parameters.
type NamedWorkflow struct {
	Name   string          `json:"name"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Stage orders the graph: no task of a stage starts before all tasks of the lower stages have ended.
type Stage int

// The stages.
const (
	StagePre Stage = iota
	StageMain
	StagePost
)

// Task is one node.
type Task struct {
	Name  string `json:"name"`
	Stage Stage  `json:"stage,omitempty"`
	// Steps are performed in order: the hooks before, the task's own step (whose name is empty), the hooks after.
	Steps []Step        `json:"steps"`
	Needs []Need        `json:"needs,omitempty"`
	Join  v1alpha1.Join `json:"join,omitempty"`
	// Policy is the resolved policy, and PolicySource its source: "task", "type" (of the objects
	// that it applies), "kind", "workflow", "flag" or "default".
	Policy       v1alpha1.FailurePolicy `json:"policy"`
	PolicySource string                 `json:"policyFrom"`

	PointOfNoReturn bool `json:"pointOfNoReturn,omitempty"`
	Always          bool `json:"always,omitempty"`
	AtMostOnce      bool `json:"atMostOnce,omitempty"`
}

// ownPolicyText returns what gives the task a policy that the other tasks do not have, for a sentence, or "".
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
	for i := range t.Steps {
		if t.Steps[i].Name == "" {
			return i
		}
	}
	return 0
}

// Kind returns the kind of the task's own step.
func (t *Task) Kind() string { return t.Steps[t.OwnStep()].Kind }

// Step is the task's own step or a hook.
type Step struct {
	// Name is empty for the task's own step, "before/NAME" or "after/NAME" for its hooks.
	Name string          `json:"name,omitempty"`
	Kind string          `json:"kind"`
	With json.RawMessage `json:"with,omitempty"`
	Undo *Undo           `json:"undo,omitempty"` // nil: the inverse of the kind
	// Holds is set if the step holds something during the run, for example a pause, that is
	// released however the run ends.
	Holds bool `json:"holds,omitempty"`
	// Releases names a task: this step releases the hold of that task's own step. It follows from
	// the inputs. It is not part of the hash, and a change of it is no change of the definition.
	Releases     string   `json:"releases,omitempty"`
	Retry        Retry    `json:"retry,omitzero"`
	Timeout      Duration `json:"timeout,omitzero"`
	TotalTimeout Duration `json:"totalTimeout,omitzero"`
	// Default is set if a failure handler is not from the manifest. It is not part of the hash, and
	// a change of it is no change of the definition.
	Default bool `json:"default,omitempty"`

	// removed is set if a migration removed the step. It is not performed, and exists for its undo only.
	removed bool
}

// Undo replaces the inverse of a step's kind.
type Undo struct {
	// None means that there is nothing to undo.
	None bool `json:"none,omitempty"`
	// Kind and With describe the step that undoes this one.
	Kind string          `json:"kind,omitempty"`
	With json.RawMessage `json:"with,omitempty"`
}

// Need is an edge from a task, by its name.
type Need struct {
	Task     string      `json:"task"`
	On       v1alpha1.On `json:"on"`
	Optional bool        `json:"optional,omitempty"`
	Timeout  Duration    `json:"timeout,omitzero"`
}

// Retry is the number of attempts, and the delay between them.
type Retry struct {
	Max      int      `json:"max,omitempty"`
	Delay    Duration `json:"delay,omitzero"`
	Factor   float64  `json:"factor,omitempty"`
	MaxDelay Duration `json:"maxDelay,omitzero"`
	Recreate bool     `json:"recreate,omitempty"`
}

// From its fourth further attempt, a task waits at least minDelay before each, so that a task that
// fails at once does not fill the log.
const (
	quickRetries = 3
	minDelay     = time.Second
)

// DelayBefore returns the delay before the n-th further attempt (1, 2, ...).
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

// Duration is a time.Duration that is encoded as text, such as "5m0s".
type Duration time.Duration

// MarshalText writes the duration in Go's notation.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads Go's notation.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// Hash returns the hash of the canonical definition, 64 hexadecimal digits.
func (d *Definition) Hash() string {
	canonical := Definition{Header: d.Header, Tasks: slices.Clone(d.Tasks)}
	canonical.OnFailure = slices.DeleteFunc(slices.Clone(d.OnFailure), func(s Step) bool { return s.Default })
	for i := range canonical.Tasks {
		canonical.Tasks[i] = withoutReleases(canonical.Tasks[i])
	}
	data, _ := json.Marshal(canonical) // only raw JSON can fail, and Build has parsed it
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// withoutReleases returns the task without Releases and without removed hooks.
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
	// Task is the name of the task; "" if the problem is about the run.
	Task string
	// Field is the field of the manifest, for example "spec.tasks[2].needs[0].task".
	Field string
	// Message describes the problem, and Remedy how to fix it.
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
