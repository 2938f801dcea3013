package remediation

import (
	"errors"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/rest"

	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/remediator"
)

// TestUpdatesOfAMachine checks the lines that a pipe receives for the changes of a machine.
func TestUpdatesOfAMachine(t *testing.T) {
	n, m := newMachineNoun(&machineSource{}), &machine{Namespace: "fleet", Name: "cp-1", Health: running}
	expect := func(want string) {
		t.Helper()
		if got := n.Updates(m); len(got) != 1 || got[0].Text != want {
			t.Errorf("Updates = %v, want %s", got, want)
		}
	}
	expect("Running")
	m.Health, m.Reason = unhealthy, "NodeReady is Unknown"
	expect("Unhealthy (NodeReady is Unknown)")
	m.Health, m.Reason = deleted, ""
	m.Remediation = &machineRemediation{Phase: "Replacing", Decision: "OwnerRemediation", Outlook: &remediator.Outlook{Rule: "c", Next: "cp-4 becomes ready"}}
	expect("Deleted; Replacing by OwnerRemediation, rule c; next: cp-4 becomes ready")
}

// TestAMisspelledCluster checks that the name of a cluster that does not exist fails with a suggestion.
func TestAMisspelledCluster(t *testing.T) {
	s := &machineSource{cluster: "prodd", session: &kit.Session[*machine]{Cluster: &connect.Cluster{Config: &rest.Config{Host: "here"}}}}
	_, err := s.inCluster(unhealthyFleet())
	if want := `cluster prodd: there is no such cluster on here, did you mean "prod"?`; err == nil || err.Error() != want {
		t.Errorf("inCluster = %v, want %s", err, want)
	}
}

// TestAWatchedMachineIsDeleted checks that a machine is read until it is deleted.
func TestAWatchedMachineIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		err := (&machineSource{}).poll(t.Context(), func() (bool, error) {
			if reads++; reads < 3 {
				return false, nil
			}
			return false, kit.ErrNotFound
		})
		if !errors.Is(err, kit.ErrNotFound) || reads != 3 {
			t.Errorf("poll = %v after %d reads", err, reads)
		}
	})
}
