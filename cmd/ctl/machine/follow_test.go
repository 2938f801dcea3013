package machine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// TestFreshTellsWhatIsNew checks that each change is printed as a line, and that nothing is printed without a change.
func TestFreshTellsWhatIsNew(t *testing.T) {
	o := &options{Kit: &kit.Kit{Env: &cli.Env{Now: func() time.Time { return time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC) }}}}
	machine := &Machine{Name: "cp-1", Node: "cp-1", Phase: "Running", NodeReady: object.True, Etcd: object.True}
	owner := &Owner{Name: "cp", ControlPlane: true, Machines: []*Machine{machine}}
	p := &snapshot{clusters: []*Cluster{{Namespace: "fleet", Name: "prod", Owners: []*Owner{owner}}}}
	told := map[string]string{}
	expect := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, o.changedLines(p, told)); diff != "" {
			t.Error(diff)
		}
	}
	expect("2026-07-30T12:00:00.000Z fleet/cp-1 Healthy")
	expect()
	machine.Mark = &v1alpha1.UnhealthyMark{State: "Unhealthy", Reason: "NodeReady is Unknown"}
	owner.Quorum = &v1alpha1.QuorumStatus{Voters: 3, Answering: 2}
	expect("2026-07-30T12:00:00.000Z fleet/cp etcd: ●●○ 2 of 3 voters answer; none of them may fail",
		"2026-07-30T12:00:00.000Z fleet/cp-1 Unhealthy (NodeReady is Unknown)")
	owner.Machines, owner.Quorum, owner.Listed = nil, nil, &Members{Members: 3, Healthy: 3}
	machine.Mark, machine.Remediation = nil, &Remediation{Phase: "Replacing", Decision: "OwnerRemediation", Outlook: &remediator.Outlook{Rule: "c", Next: "cp-4 becomes ready"}}
	owner.Gone = []*Machine{machine}
	expect("2026-07-30T12:00:00.000Z fleet/cp etcd: ●●● 3 of 3 members healthy according to Cluster API's conditions; 1 may still fail",
		"2026-07-30T12:00:00.000Z fleet/cp-1 deleted; Replacing by OwnerRemediation, rule c; next: cp-4 becomes ready")
	owner.Gone = nil
	expect("2026-07-30T12:00:00.000Z fleet/cp-1 deleted")
	expect()
}

// TestAnOwnerIsNotGone checks that an owner is not reported as gone if it is no longer shown because the watched
// machine is gone.
func TestAnOwnerIsNotGone(t *testing.T) {
	o := &options{names: []string{"cp-1"}, watch: true}
	o.Kit = &kit.Kit{Env: &cli.Env{Now: func() time.Time { return time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC) }}}
	owner := &Owner{Name: "cp", Quorum: &v1alpha1.QuorumStatus{Voters: 3, Answering: 2}, Machines: []*Machine{{Name: "cp-1"}, {Name: "cp-2"}}}
	p := &snapshot{clusters: []*Cluster{{Namespace: "fleet", Name: "prod", Owners: []*Owner{owner}}}}
	told, r := make(map[string]string), &reader{options: o}
	if err := r.selectNamed(p); err != nil {
		t.Fatal(err)
	}
	o.changedLines(p, told)
	owner.Machines = []*Machine{{Name: "cp-2"}}
	if err := r.selectNamed(p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"2026-07-30T12:00:00.000Z fleet/cp-1 deleted"}, o.changedLines(p, told)); diff != "" {
		t.Error(diff)
	}
}

// TestWatchRefusesANameThatIsNotThere checks that watching a machine that does not exist fails with a suggestion.
func TestWatchRefusesANameThatIsNotThere(t *testing.T) {
	r := &reader{options: &options{names: []string{"cp-l"}, watch: true}, namespace: "fleet", cluster: &connect.Cluster{Config: &rest.Config{Host: "here"}}}
	objects := &Objects{Machines: []clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "cp-1"}}}}
	p := &snapshot{objects: objects, clusters: []*Cluster{{Owners: []*Owner{{Machines: []*Machine{{Name: "cp-1"}}}}}}}
	err := r.selectNamed(p)
	if want := `machine cp-l: there is no such machine in namespace fleet on here, did you mean "cp-1"?`; err == nil || err.Error() != want {
		t.Errorf("choose = %v, want %s", err, want)
	}
}
