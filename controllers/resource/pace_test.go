package resource

import (
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pace
		key := client.ObjectKey{Name: "a"}
		check := func(after time.Duration, key client.ObjectKey, phase string, want time.Duration) {
			t.Helper()
			time.Sleep(after)
			if wait := p.Delay(key, phase, time.Second); wait != want {
				t.Errorf("Delay of phase %s = %s, want %s", phase, wait, want)
			}
		}
		check(0, key, "Running", 0)
		check(300*time.Millisecond, key, "Running", 700*time.Millisecond)
		check(100*time.Millisecond, key, "Paused", 0)
		check(time.Second, key, "Paused", 0)
		check(0, client.ObjectKey{Name: "b"}, "Paused", 0)
		p.Forget(key)
		if len(p.last) != 1 {
			t.Errorf("got %d entries after Forget, want 1", len(p.last))
		}
	})
}
