package remediator_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/remediator"
)

// What an operator aborted or holds is remembered however many other machines recover; the rest is bounded.
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
		t.Errorf("%d of 100 machines with a hold or an abort are remembered, and %d others", ordered, others)
	}
}
