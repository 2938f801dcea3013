package remediator_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
)

// TestTwoLiveLogs checks that two processes with a log each, which can act on one owner with --leader-elect=false, do
// no harm. They revert each other's requests, but no healthy machine is deleted, quorum is kept, and in the end either
// the machines are replaced or both processes report that a human is needed.
func TestTwoLiveLogs(t *testing.T) {
	kubelet := func(m *machine) { m.Kubelet = false }
	dead := func(m *machine) { m.Kubelet, m.Etcd = false, false }
	pressed := func(m *machine) { m.Pressed = true }
	for name, c := range map[string]struct {
		given func(*world)
		hurt  func(*machine)
	}{
		"rollout":           {func(*world) {}, pressed},
		"relaxed":           {func(*world) {}, kubelet},
		"hand-over of dead": {func(*world) {}, dead},
		"hand-over": {func(w *world) {
			w.policy.Methods = map[v1alpha1.RepairMethod]bool{v1alpha1.MethodOwnerRemediation: true}
		}, kubelet},
		"replicas": {func(w *world) { w.policy.Methods[v1alpha1.MethodRolloutSurge] = false }, pressed},
		"workers":  {func(w *world) { w.owner.Kind = string(remediator.Deployment) }, kubelet},
	} {
		for _, second := range []int{0, 1, 3} { // index of another machine that breaks later; 0 for none
			t.Run(fmt.Sprintf("%s, %d", name, second), func(t *testing.T) {
				w := newWorld(startTime())
				c.given(w)
				for range 5 {
					w.add("")
				}
				w.owner.Replicas = 5
				logs := []*node{{}, {}}
				for _, n := range logs {
					n.w, n.desired, n.logf = w, 5, func(string, ...any) {}
					n.state.Apply(remediator.Registered{Owner: w.owner.Owner}, w.now)
				}
				c.hurt(w.machines[0])
				w.elect("")
				for round := range 200 {
					if round == 2 && second > 0 {
						c.hurt(w.machines[second])
						w.elect("")
					}
					for _, n := range logs {
						n.turn(-1, nil)
						w.stepOwner(t)
					}
					w.now = w.now.Add(time.Minute)
				}
				if !needsHuman(logs[0]) || !needsHuman(logs[1]) {
					w.checkSettled(t, logs)
				}
			})
		}
	}
}

// stepOwner performs one step of the owner and of its machines.
func (w *world) stepOwner(t *testing.T) {
	t.Helper()
	if _, m := w.act(); m != nil {
		m.Deleting = false
		well := w.isHealthy(m) && m.Created.Before(startTime())
		if m.Deleting = true; well {
			t.Fatalf("the owner deleted the healthy machine %s", m.Name)
		}
	}
	for _, m := range slices.Clone(w.machines) {
		if m.Deleting {
			w.finishDeletion(m)
		} else if m.Node == "" {
			w.join(m)
		}
	}
	if w.stacked() && !w.quorum() {
		t.Fatal("quorum was lost")
	}
}

func needsHuman(n *node) bool {
	for _, u := range n.state.Unhealthy {
		if u.Mark.State != "" && u.Decision.Verdict == remediator.CannotRemediate {
			return true
		}
	}
	return false
}

// checkSettled checks that no log has a remediation in progress, and that all machines exist and are healthy.
func (w *world) checkSettled(t *testing.T, logs []*node) {
	t.Helper()
	for i, n := range logs {
		if a := n.state.Active; a != nil {
			t.Errorf("log %d: %s is still in step %s", i, a.Victim.Name, a.Step)
		}
	}
	if len(w.machines) != 5 || w.owner.Replicas != 5 {
		t.Errorf("got %d machines and %d replicas, want 5 of each", len(w.machines), w.owner.Replicas)
	}
	for _, m := range w.machines {
		if !w.isHealthy(m) || m.DeleteAnnotation != "" {
			t.Errorf("%s: well %t, mark %q", m.Name, w.isHealthy(m), m.DeleteAnnotation)
		}
	}
}
