package move

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"scute.dev/aggregate"
	"scute.dev/mover"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Kind moves Cluster API clusters to another management cluster with a complete Move.
//
// A local run drives the move in this process, as a separate aggregate in the run's log. In the
// daemon the Kind creates a Move resource with the run's ServiceAccount and waits until it ends.
//
// An attempt that is cancelled, times out or dies does not end the move: the next attempt continues
// it. It begins another move only if the last one was rolled back or rejected.
//
// The undo rolls back a move that has not been verified. It never moves clusters back after that.
type Kind struct {
	Clusters *access.Clusters
	// Log and Incarnation, the name of this process in the log, are for local runs.
	Log         aggregate.Log
	Incarnation string
	// Resource creates a Move resource instead, in the daemon.
	Resource bool
}

// With are the inputs of Move.
type With struct {
	// Clusters are names of Clusters in Namespace. All moves all Clusters, and other movable objects.
	Clusters []string `json:"clusters,omitempty"`
	All      bool     `json:"all,omitempty"`
	// Namespace of the clusters; the run's by default. The daemon allows no other.
	Namespace string `json:"namespace,omitempty"`
	// From is the management cluster to move from; the run's by default. The daemon allows no other.
	From access.ClusterRef `json:"from,omitzero"`
	// To is the management cluster to move to. The daemon requires kubeconfigSecretRef.
	To access.ClusterRef `json:"to"`
	// CarryStatus lists kinds, as Kind.group, whose status is also written on the target.
	CarryStatus []string `json:"carryStatus,omitempty"`
	// AcceptLoss lists kinds, as Kind.group, of objects that the move may destroy because they cannot be moved.
	AcceptLoss []string `json:"acceptLoss,omitempty"`
	// Timeouts bound the waits; each has a default.
	Timeouts MoveTimeouts `json:"timeouts,omitzero"`
}

// MoveTimeouts bound how long a move waits.
type MoveTimeouts struct {
	// Acknowledge bounds the wait until every object's controller has acknowledged the pause. Default: 5m.
	Acknowledge workflow.Duration `json:"acknowledge,omitzero"`
	// Create bounds the creation of all objects on the target. Default: 30m.
	Create workflow.Duration `json:"create,omitzero"`
	// Resume bounds the wait until every object's controller on the target has acknowledged that it
	// resumed; the move ends after it. Default: 10m.
	Resume workflow.Duration `json:"resume,omitzero"`
}

// moveRecord is what Move records before it acts. With it, a later attempt or the undo reaches both
// management clusters again.
type moveRecord struct {
	// Base is the name of the first move of this task. Further moves have the suffixes -2, -3, ...
	Base string            `json:"base"`
	From access.ClusterRef `json:"from,omitzero"`
	To   access.ClusterRef `json:"to"`
	// Number is the number of the latest Move resource; 0 for the first one and in a local run.
	// Earlier Moves have ended and may be deleted.
	Number int `json:"number,omitempty"`
}

type output struct {
	// Move is the ID of the move in the log or, in the daemon, the name of the Move resource.
	Move     string `json:"move"`
	Clusters int    `json:"clusters"`
	Objects  int    `json:"objects"`
	Message  string `json:"message,omitempty"`
}

// ErrMoved is the final error of an undo after a completed move.
var ErrMoved = errors.New("the clusters have been moved, and a completed move is not undone: to move them back, set undo of the task to kind " +
	"Move with from and to exchanged")

const secretKey = "value"

const (
	acknowledgeTimeout = workflow.Duration(5 * time.Minute)
	createTimeout      = workflow.Duration(30 * time.Minute)
	resumeTimeout      = workflow.Duration(10 * time.Minute)
)

// Validate checks the selection and the two sides.
func (m *Kind) Validate(with json.RawMessage) []workflow.Problem {
	w, problems := task.Decode[With](with)
	if len(problems) > 0 {
		return problems
	}
	if (len(w.Clusters) > 0) == w.All {
		problems.Add("clusters", "exactly one of clusters and all must be set", "name clusters, or set all: true")
	}
	if w.To == (access.ClusterRef{}) {
		problems.Add("to", "it is empty", "name the management cluster to move to")
	}
	for field, d := range map[string]workflow.Duration{"acknowledge": w.Timeouts.Acknowledge, "create": w.Timeouts.Create, "resume": w.Timeouts.Resume} {
		if d < 0 {
			problems.Add("timeouts."+field, "it is negative", "use a duration, for example 5m")
		}
	}
	if !m.Resource {
		return problems
	}
	if w.From != (access.ClusterRef{}) {
		problems.Add("from", "the daemon can only move from the cluster that it runs in", "remove it, or run the workflow with `scutectl run --local`")
	}
	if ref := w.To.KubeconfigSecretRef; ref != nil && ref.Namespace != "" {
		problems.Add("to.kubeconfigSecretRef.namespace", "the daemon can only read Secrets in the run's own namespace", "remove it, and put the Secret there")
	}
	if w.To != (access.ClusterRef{}) && w.To.KubeconfigSecretRef == nil {
		problems.Add("to", "the daemon cannot read a kubeconfig file", "put the kubeconfig into a Secret and name it in to.kubeconfigSecretRef")
	}
	return problems
}

// Run moves the clusters, or continues the move of an earlier attempt.
func (m *Kind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	w, err := task.ReadInputs[With](c, m.Validate)
	if err != nil {
		return nil, err
	}
	if m.Resource && w.Namespace != "" && w.Namespace != c.Namespace {
		return nil, task.Final(fmt.Errorf("with.namespace: the daemon can only move clusters of the run's own namespace, %s: run the workflow in the "+
			"namespace of the clusters", c.Namespace))
	}
	was, err := task.Recorded[moveRecord](c)
	if err != nil {
		return nil, err
	}
	record := moveRecord{From: w.From, To: w.To, Number: was.Number}
	if record.Base = m.localBase(c); m.Resource {
		record.Base = resourceBase(c)
	}
	begun, spec, err := m.findBegun(ctx, c, &record)
	if err != nil {
		return nil, err
	}
	here := len(c.Undo) == 0 || reflect.DeepEqual(was.From, w.From) && reflect.DeepEqual(was.To, w.To) // no attempt has recorded anything
	if begun != "" && !(here && sameSpec(spec, moveSpec(c, w))) {
		return nil, task.Final(fmt.Errorf("an earlier attempt started move %s with other inputs, and the move is in progress or has succeeded: restore "+
			"these inputs, "+
			"and the next attempt continues the move; to move anything else, use another task", begun))
	}
	if err := c.Prepare(ctx, record, false); err != nil {
		return nil, err
	}
	if m.Resource {
		return m.runResource(ctx, c, record, w)
	}
	return m.runLocal(ctx, c, record, w)
}

// findBegun returns the ID and the specification of the move that an attempt would continue. id is
// "" if there is none. It sets the number in the record.
func (m *Kind) findBegun(ctx context.Context, c *task.Call, record *moveRecord) (id string, spec mover.Spec, err error) {
	if !m.Resource {
		id, s, err := m.current(ctx, *record)
		if err != nil || s.Phase == "" {
			return "", spec, err
		}
		return id, s.Spec, nil
	}
	own, err := m.Clusters.Open(ctx, c, access.ClusterRef{})
	if err != nil {
		return "", spec, err
	}
	move, n, err := currentMove(ctx, own, c, *record)
	if err != nil {
		return "", spec, resourceError(err)
	}
	if record.Number = n; move.UID == "" {
		return "", spec, nil
	}
	s := move.Spec
	return move.Name, mover.Spec{
		Namespace: move.Namespace, Clusters: s.Selection.Clusters, All: s.Selection.All, CarryStatus: s.CarryStatus, AcceptLoss: s.AcceptLoss,
		Target: mover.Target{SecretName: s.Target.KubeconfigSecretRef.Name, SecretKey: cmp.Or(s.Target.KubeconfigSecretRef.Key, secretKey), AllowInsecure: s.Target.AllowInsecure},
	}, nil
}

// sameSpec reports whether two specifications are equal apart from the timeouts. A move that has
// begun keeps its timeouts.
func sameSpec(asked, wanted mover.Spec) bool {
	return asked.Namespace == wanted.Namespace && asked.All == wanted.All && asked.Target == wanted.Target &&
		slices.Equal(asked.Clusters, wanted.Clusters) && slices.Equal(asked.CarryStatus, wanted.CarryStatus) && slices.Equal(asked.AcceptLoss, wanted.AcceptLoss)
}

// Undo rolls back a move that has not been verified.
func (m *Kind) Undo(ctx context.Context, c *task.Call) error {
	record, err := task.Recorded[moveRecord](c)
	if err != nil || len(c.Undo) == 0 {
		return err
	}
	if m.Resource {
		return m.undoResource(ctx, c, record)
	}
	return m.undoLocal(ctx, c, record)
}

// Removes reports whether the object is in the namespace of the moved clusters. It does not compare
// API servers, because one API server can be reached in different ways.
func (*Kind) Removes(c *task.Call, o task.Object) bool {
	var w With
	err := json.Unmarshal(c.With, &w)
	return err != nil || cmp.Or(w.Namespace, c.Namespace) == o.Namespace
}

// nth returns the name of the task's n-th move. The first move has the number 1.
func (r moveRecord) nth(n int) string {
	if n == 1 {
		return r.Base
	}
	return fmt.Sprintf("%s-%d", r.Base, n)
}
