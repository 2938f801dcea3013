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

// The words of the manifest, which this package shares.
type (
	Policy  = v1alpha1.FailurePolicy
	Verdict = v1alpha1.Verdict
	Phase   = v1alpha1.RunPhase
	On      = v1alpha1.On
	Join    = v1alpha1.Join
)

// Definition is a valid graph with every default filled in and every policy looked up. It is pinned in the log: a run
// continues with it whatever the manifest or the daemon's flags say later. Made by Build.
type Definition struct {
	Header
	// Tasks in the order of the manifest; pre hooks stand first and post hooks last.
	Tasks []Task `json:"tasks"`
}

// Header is a definition without its tasks.
type Header struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Workflow names the workflow that scute brings along, if it is one.
	Workflow *Named `json:"workflow,omitempty"`
	// ServiceAccount whose permissions the tasks have in the daemon.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// Policy of the run: what running out of the deadline leads to (Rollback rolls back, anything else aborts).
	Policy   Policy   `json:"policy"`
	Deadline Duration `json:"deadline,omitzero"`
	// OnFailure are the handlers of the error channel.
	OnFailure []Step `json:"onFailure,omitempty"`
}

// Named is a workflow that scute brings along, with its parameters.
type Named struct {
	Name   string          `json:"name"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Stage orders the graph as a whole: no task of a stage starts before every task of the stages below it has ended.
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
	// Steps are performed one after the other: the hooks before, the task's own step (whose name is empty), the hooks
	// after.
	Steps []Step `json:"steps"`
	Needs []Need `json:"needs,omitempty"`
	Join  Join   `json:"join,omitempty"`
	// Policy as it was looked up, and where: "task", "type" (of the objects that it applies), "kind", "workflow", "flag" or "default".
	Policy     Policy `json:"policy"`
	PolicyFrom string `json:"policyFrom"`

	PointOfNoReturn bool `json:"pointOfNoReturn,omitempty"`
	Always          bool `json:"always,omitempty"`
	AtMostOnce      bool `json:"atMostOnce,omitempty"`
}

// OwnPolicy returns what gives the task a policy that the others do not have, for a sentence; empty if nothing does.
func (t *Task) OwnPolicy() string {
	switch t.PolicyFrom {
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

// Own is the index of the task's own step among its steps.
func (t *Task) Own() int {
	for i := range t.Steps {
		if t.Steps[i].Name == "" {
			return i
		}
	}
	return 0
}

// Kind is the kind of the task's own step.
func (t *Task) Kind() string { return t.Steps[t.Own()].Kind }

// Step is one thing to do.
type Step struct {
	// Name is empty for the task's own step, "before/NAME" or "after/NAME" for its hooks.
	Name string          `json:"name,omitempty"`
	Kind string          `json:"kind"`
	With json.RawMessage `json:"with,omitempty"`
	Undo *Undo           `json:"undo,omitempty"` // nil: the kind's own inverse
	// Holds says that the step holds something for the time of the run, a pause for example, that is given back however
	// the run ends.
	Holds bool `json:"holds,omitempty"`
	// Releases names a task: the step ends what that task's own step holds. It follows from the inputs, and counts neither for
	// the hash nor for what is changed: a definition from before this field is the same.
	Releases     string   `json:"releases,omitempty"`
	Retry        Retry    `json:"retry,omitzero"`
	Timeout      Duration `json:"timeout,omitzero"`
	TotalTimeout Duration `json:"totalTimeout,omitzero"`
	// Default says that a handler of failures was added to those of the manifest. It counts neither for the hash nor for what is changed.
	Default bool `json:"default,omitempty"`

	// removed: by a migration. It is performed no more, and is there for its undo's sake.
	removed bool
}

// Undo replaces the inverse of a step's kind.
type Undo struct {
	// None: there is nothing to undo.
	None bool `json:"none,omitempty"`
	// Kind and With are a step that is performed to undo.
	Kind string          `json:"kind,omitempty"`
	With json.RawMessage `json:"with,omitempty"`
}

// Need is an edge to a task by its name.
type Need struct {
	Task     string   `json:"task"`
	On       On       `json:"on"`
	Optional bool     `json:"optional,omitempty"`
	Timeout  Duration `json:"timeout,omitzero"`
}

// Retry says how often and how soon a failed attempt is followed by another.
type Retry struct {
	Max      int      `json:"max,omitempty"`
	Delay    Duration `json:"delay,omitzero"`
	Factor   float64  `json:"factor,omitempty"`
	MaxDelay Duration `json:"maxDelay,omitzero"`
	Recreate bool     `json:"recreate,omitempty"`
}

// From its fourth further attempt on, a task waits at least leastDelay for each: a task that fails at once must not fill the
// log.
const (
	quickRetries = 3
	leastDelay   = time.Second
)

// Wait is the delay before the n-th further attempt (1, 2, ...).
func (r Retry) Wait(n int) time.Duration {
	wait, limit := float64(r.Delay), float64(r.MaxDelay)
	for i := 1; i < n && wait < limit; i++ {
		wait *= r.Factor
	}
	delay := time.Duration(min(wait, limit))
	if n > quickRetries {
		return max(delay, leastDelay)
	}
	return delay
}

// Duration is a time.Duration that reads and writes as "5m0s".
type Duration time.Duration

// MarshalText writes the duration in Go's notation.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads Go's notation.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// Hash of the canonical definition, 64 hexadecimal digits.
func (d *Definition) Hash() string {
	canonical := Definition{Header: d.Header, Tasks: slices.Clone(d.Tasks)}
	canonical.OnFailure = slices.DeleteFunc(slices.Clone(d.OnFailure), func(s Step) bool { return s.Default })
	for i := range canonical.Tasks {
		canonical.Tasks[i] = withoutReleases(canonical.Tasks[i])
	}
	data, err := json.Marshal(canonical)
	if err != nil { // only raw JSON could fail, and Build has parsed all of it
		data = fmt.Appendf(nil, "%#v", canonical)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// withoutReleases is the task without what follows from its inputs anyhow, and without hooks that were removed.
func withoutReleases(t Task) Task {
	if slices.ContainsFunc(t.Steps, func(s Step) bool { return s.Releases != "" || s.removed }) {
		t.Steps = slices.DeleteFunc(slices.Clone(t.Steps), func(s Step) bool { return s.removed })
		for n := range t.Steps {
			t.Steps[n].Releases = ""
		}
	}
	return t
}

// Problem is one thing that is wrong with a definition, or doubtful.
type Problem struct {
	// Task is the name of the task, "" for the run as a whole.
	Task string
	// Field in the manifest, for example "spec.tasks[2].needs[0].task".
	Field string
	// Message says what is wrong, Remedy what to do.
	Message, Remedy string
	// Warning: the run may start all the same.
	Warning bool
}

// String is the problem in one line.
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
