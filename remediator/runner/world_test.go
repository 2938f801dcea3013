package runner_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/runner"
)

// world simulates a control plane of three machines and its owner: the owner creates a machine when one is outdated,
// and deletes the outdated one when the new one is healthy. It is only for tests of the loop; test/remediation tests
// the real owners.
type world struct {
	mu          sync.Mutex
	now         time.Time
	facts       remediator.Facts
	made        int
	unreachable bool // its API server and etcd are unreachable
	// before is called before each action, and its error is the result of that action.
	before   func(remediator.Action) error
	problems []string
	asked    int
}

func newWorld(name string) *world {
	w := &world{now: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)}
	w.facts = remediator.Facts{
		Owner: remediator.OwnerFacts{
			Owner: remediator.Owner{Kind: string(remediator.ControlPlane), Namespace: "fleet", Name: name, UID: types.UID(name + "-uid"), Cluster: name},
			Found: true, Replicas: 3, Observed: true, MaxSurge: 1, Tested: true,
		},
		Cluster: remediator.ClusterFacts{Found: true},
		Policy: remediator.Policy{
			Name: "repair", Attempts: 3,
			Checks:   remediator.Checks{NodeStartup: time.Hour, Node: []remediator.Check{{Type: "Ready", Status: object.Unknown, Timeout: time.Minute}}},
			Limits:   remediator.Limits{AtOnce: 2, PerWindow: 1000, Window: time.Hour, MassFailure: remediator.MassFailure{Percent: 50, Floor: 20}},
			Timeouts: remediator.Timeouts{ScaleUp: time.Hour, Ready: time.Hour, Removal: time.Hour},
		},
	}
	for range 3 {
		w.add()
	}
	return w
}

func (w *world) add() {
	w.made++
	name := fmt.Sprintf("m%d", w.made)
	m := remediator.Machine{Name: name, UID: types.UID(name), Created: w.now, Node: name, ClonedFrom: "template", Conditions: map[string]remediator.Condition{}}
	for _, c := range []string{
		clusterv1.MachineNodeReadyCondition, "APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy", "EtcdMemberHealthy",
	} {
		m.Conditions[c] = remediator.Condition{Status: object.True, Since: w.now}
	}
	w.facts.Machines = append(w.facts.Machines, m)
}

// failNode sets the Ready condition of a machine's node to Unknown.
func (w *world) failNode(i int) {
	w.facts.Machines[i].Conditions[clusterv1.MachineNodeReadyCondition] = remediator.Condition{Status: object.Unknown, Since: w.now}
	w.now = w.now.Add(2 * time.Minute)
}

// owner performs the owner's next step.
func (w *world) owner() {
	w.now = w.now.Add(10 * time.Second)
	machines := w.facts.Machines
	if gone := slices.IndexFunc(machines, func(m remediator.Machine) bool { return m.Deleting }); gone >= 0 {
		w.facts.Machines = slices.Delete(machines, gone, gone+1)
		return
	}
	outdated := slices.IndexFunc(machines, func(m remediator.Machine) bool { return m.ClonedFrom != "template" })
	switch {
	case len(machines) == 3 && outdated >= 0:
		w.add()
	case len(machines) > 3:
		marked := slices.IndexFunc(machines, func(m remediator.Machine) bool { return m.DeleteAnnotation != "" })
		if marked < 0 {
			w.problems = append(w.problems, "one machine too many, and none is marked")
			marked = 0
		}
		machines[marked].Deleting = true
	}
}

// Observe implements runner.Observer.
func (w *world) Observe(context.Context, remediator.Owner, remediator.CreatedObjects) (*remediator.Facts, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.facts
	f.Machines = slices.Clone(w.facts.Machines)
	return &f, nil
}

// Probe implements runner.Observer.
func (w *world) Probe(_ context.Context, seen *remediator.Facts) (*remediator.Facts, error) {
	w.asked++
	f := *seen
	f.Cluster.Reachable, f.Etcd = object.True, &remediator.Etcd{}
	if w.unreachable {
		f.Cluster.Reachable, f.Etcd.Err = object.False, "no answer"
		return &f, nil
	}
	for i := range f.Machines {
		f.Etcd.Members = append(f.Etcd.Members, remediator.Member{Node: f.Machines[i].Node, Answers: object.True})
	}
	return &f, nil
}

var errRefused = errors.New("refused")

// Perform implements runner.Executor.
func (w *world) Perform(_ context.Context, _ *remediator.Facts, a remediator.Action) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.before != nil {
		if err := w.before(a); err != nil {
			return err
		}
	}
	i := slices.IndexFunc(w.facts.Machines, func(m remediator.Machine) bool { return m.UID == a.Machine.UID })
	if i < 0 {
		return nil
	}
	switch m := &w.facts.Machines[i]; a.Type {
	case remediator.SetUnhealthy:
		m.UnhealthyAnnotation = a.Value
	case remediator.SetNeeded:
		m.Needed = a.Value
	case remediator.SetDelete:
		m.DeleteAnnotation = a.Value
	case remediator.SetClonedFrom:
		m.ClonedFrom = a.Value
	case remediator.SetRelaxed:
		w.facts.Owner.Relaxed = a.Value
	case remediator.Touch:
		w.facts.Owner.Touched = a.Value
	case remediator.CreateRequest:
		m.Request = &remediator.Request{UID: "r", Created: w.now}
	case remediator.DeleteRequest:
		m.Request = nil
	default:
		return fmt.Errorf("%s: %w", a.Type, errRefused)
	}
	return nil
}

// replaced checks that the unhealthy machine was replaced, the other machines still exist, and no annotation remains.
func (w *world) replaced(t *testing.T, unhealthy string) {
	t.Helper()
	for _, wrong := range w.problems {
		t.Error(wrong)
	}
	var names []string
	for _, m := range w.facts.Machines {
		names = append(names, m.Name)
		if m.DeleteAnnotation != "" || m.UnhealthyAnnotation != "" || m.ClonedFrom != "template" {
			t.Errorf("machine %s still has annotations: %+v", m.Name, m)
		}
	}
	if len(names) != 3 || slices.Contains(names, unhealthy) || w.facts.Owner.Touched != "" {
		t.Errorf("machines = %v, touched = %q", names, w.facts.Owner.Touched)
	}
	older := slices.DeleteFunc(names, func(name string) bool { return !slices.Contains([]string{"m1", "m2", "m3"}, name) })
	if len(older) != 2 {
		t.Errorf("remaining older machines = %v, want 2", older)
	}
}

// process returns the runner of a separate process: it has its own incarnation and a view that has read the log.
func process(t *testing.T, name string, l aggregate.Log, w *world) *runner.Runner {
	t.Helper()
	view := runner.NewRemediations()
	for _, r := range records(t, l, w.facts.Owner.Owner) {
		if err := view.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	return &runner.Runner{
		Log: l, Incarnation: name, Observer: w, Executor: w, View: view, Logger: slog.New(slog.DiscardHandler),
		Now:    func() time.Time { return w.now },
		MoveOf: func(context.Context, uint64, string, string) (string, error) { return "", nil },
	}
}

// runUntilDone takes turns, with steps of the owner between them, until the remediation has ended.
func runUntilDone(t *testing.T, r *runner.Runner, l aggregate.Log, w *world) error {
	t.Helper()
	for range 40 {
		if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
			return err
		}
		if s := stateOf(t, l, w.facts.Owner.Owner); len(s.History) > 0 && s.Active == nil && !remediator.HasPending(&s) {
			_, err := r.Reconcile(t.Context(), w.facts.Owner.Owner) // remove what remains
			return err
		}
		w.owner()
	}
	return errors.New("it does not end")
}

func stateOf(t *testing.T, l aggregate.Log, owner remediator.Owner) remediator.State {
	t.Helper()
	var s remediator.State
	for _, r := range records(t, l, owner) {
		if err := remediator.NewCatalog().Fold(r, s.Apply); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func records(t *testing.T, l aggregate.Log, owner remediator.Owner) []eventlog.Record {
	t.Helper()
	list, err := l.Read(t.Context(), eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: owner.ID()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// recover sets the Ready condition of a machine's node to True.
func (w *world) recover(i int) {
	w.facts.Machines[i].Conditions[clusterv1.MachineNodeReadyCondition] = remediator.Condition{Status: object.True, Since: w.now}
}
