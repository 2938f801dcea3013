package remediation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/remediator"
)

// TestOnlyChangesArePrinted checks that each change is printed as a line, and that nothing is printed without a change.
func TestOnlyChangesArePrinted(t *testing.T) {
	o := &options{Kit: &kit.Kit{Env: &cli.Env{Now: func() time.Time { return time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC) }}}}
	m := &machine{Namespace: "fleet", Name: "cp-1", Health: running}
	list := []*machine{m}
	told := map[string]string{}
	expect := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, o.changedLines(list, told)); diff != "" {
			t.Error(diff)
		}
	}
	expect("2026-07-30T12:00:00.000Z fleet/cp-1 Running")
	expect()
	m.Health, m.Reason = unhealthy, "NodeReady is Unknown"
	expect("2026-07-30T12:00:00.000Z fleet/cp-1 Unhealthy (NodeReady is Unknown)")
	m.Health, m.Reason = deleted, ""
	m.Remediation = &machineRemediation{Phase: "Replacing", Decision: "OwnerRemediation", Outlook: &remediator.Outlook{Rule: "c", Next: "cp-4 becomes ready"}}
	expect("2026-07-30T12:00:00.000Z fleet/cp-1 Deleted; Replacing by OwnerRemediation, rule c; next: cp-4 becomes ready")
	list = nil
	expect("2026-07-30T12:00:00.000Z fleet/cp-1 deleted")
	expect()
}

// TestAMisspelledMachine checks that the name of a machine that does not exist fails with a suggestion, unless the
// machine existed before.
func TestAMisspelledMachine(t *testing.T) {
	r := &reader{options: &options{names: []string{"prod-control-plane-h2tv"}}, namespace: "fleet", cluster: &connect.Cluster{Config: &rest.Config{Host: "here"}}}
	_, err := r.selected(unhealthyFleet())
	if want := `machine prod-control-plane-h2tv: there is no such machine in namespace fleet on here, did you mean "prod-control-plane-h2ttv"?`; err == nil || err.Error() != want {
		t.Errorf("selected = %v, want %s", err, want)
	}
	r.found = true
	if list, err := r.selected(unhealthyFleet()); err != nil || len(list) != 0 {
		t.Errorf("selected = %v, %v", list, err)
	}
	r.options = &options{cluster: "prodd"}
	_, err = r.selected(unhealthyFleet())
	if want := `cluster prodd: there is no such cluster in namespace fleet on here, did you mean "prod"?`; err == nil || err.Error() != want {
		t.Errorf("selected = %v, want %s", err, want)
	}
}
