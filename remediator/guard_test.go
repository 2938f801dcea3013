package remediator_test

import (
	"slices"
	"testing"
	"time"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// TestGuardIsTakenOff checks that the annotation is removed from machines that are no longer guarded.
func TestGuardIsTakenOff(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for what, change := range map[string]func(*remediator.Facts){
		"its owner is being deleted": func(f *remediator.Facts) { f.Owner.Deleting = true },
		"its Cluster is being deleted, and does not answer": func(f *remediator.Facts) {
			f.Cluster.Deleting, f.Cluster.Reachable, f.Etcd = true, object.False, &remediator.Etcd{Err: "no answer"}
			f.Machines[0].Deleting = true
		},
		"its owner is gone":         func(f *remediator.Facts) { f.Owner.Found = false },
		"the policy cannot be read": func(f *remediator.Facts) { f.Policy = remediator.Policy{Name: "all", Unreadable: "x"} },
		"it is a worker":            func(f *remediator.Facts) { f.Owner.Kind = string(remediator.Deployment) },
		"no policy selects it":      func(f *remediator.Facts) { f.Policy = remediator.Policy{} },
		"the policy guards nothing": func(f *remediator.Facts) { f.Policy.GuardsMachines = false },
	} {
		w := newWorld(now)
		for range 3 {
			w.add("")
		}
		w.owner.Replicas, w.policy.GuardsMachines = 3, true
		f := w.observe(false)
		for i := range f.Machines {
			f.Machines[i].Needed = "it was"
		}
		change(f)
		off := func(a remediator.Action) bool { return a.Type == remediator.SetNeeded && a.Value == "" }
		if !slices.ContainsFunc(remediator.Actions(&remediator.State{}, f, now), off) {
			t.Errorf("%s: the annotation is not removed", what)
		}
	}
}
