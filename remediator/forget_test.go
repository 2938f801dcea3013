package remediator_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/remediator"
)

// TestForget checks that holds and aborts of operators are kept however many other machines recover, and that the
// number of other records is bounded.
func TestForget(t *testing.T) {
	var s remediator.State
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for i := range 200 {
		m := remediator.Subject{Name: fmt.Sprintf("m%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i))}
		at = at.Add(time.Second)
		s.Apply(remediator.MachineMarked{Machine: m, State: remediator.Unhealthy, Since: at}, at)
		switch {
		case i < 50:
			s.Apply(remediator.HoldSet{Machine: m}, at)
		case i < 100:
			s.Apply(remediator.AbortRequested{Machine: m}, at)
		}
		s.Apply(remediator.MachineMarkCleared{Machine: m, Cause: remediator.Recovered}, at)
	}
	ordered, others := 0, 0
	for _, u := range s.Unhealthy {
		if u.Held || u.Aborted {
			ordered++
		} else {
			others++
		}
	}
	if ordered != 100 || others != 32 {
		t.Errorf("%d of 100 held or aborted machines and %d others are remembered, want 100 and 32", ordered, others)
	}
}

// TestForgetReported checks that an owner of which only an etcd report without problems remains is forgotten a year
// later, so that it is not reported again before, and kept when the report has a problem.
func TestForgetReported(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		problems []remediator.EtcdProblem
		forgets  bool
	}{
		"well":    {nil, true},
		"problem": {[]remediator.EtcdProblem{{Members: []string{"n1"}}}, false},
	} {
		var s remediator.State
		s.Apply(remediator.Registered{Owner: remediator.Owner{Kind: string(remediator.ControlPlane), Namespace: "fleet", Name: "cp", UID: "uid"}}, at)
		s.Apply(remediator.EtcdReported{Leader: "n1", Problems: c.problems}, at)
		if remediator.Forget(s.Clone(), at.Add(year-time.Second)) {
			t.Errorf("%s: Forget = true within a year", name)
		}
		if got := remediator.Forget(&s, at.Add(year)); got != c.forgets || s.Etcd.At.IsZero() != c.forgets {
			t.Errorf("%s: Forget = %v, report %v", name, got, s.Etcd)
		}
	}
}
