package transfer

import (
	"strings"
	"testing"

	"scute.dev/mover"
)

// Somebody lifts the pause of the source after Verified. Its controllers are at work again: nothing is deleted before they have
// taken note of the pause once more.
func TestNothingIsDeletedBesideControllersThatWoke(t *testing.T) {
	says := func(status string) obj {
		return obj{"status": obj{"conditions": []any{obj{"type": "Paused", "status": status}}}}
	}
	f := moved(t, mover.Verified{})
	f.src.merge(f.cluster, says("True"))
	f.src.merge(f.cluster, obj{"spec": obj{"paused": nil}})
	f.src.merge(f.machine, says("False"))
	for range 2 {
		message, next := f.step()
		if !strings.Contains(message, "lifted the pause") || !strings.Contains(next, "GitOps") {
			t.Errorf("%q, next %q", message, next)
		}
		f.there(f.src, f.machine)
		f.isPaused(f.src, f.cluster, true)
	}
	f.src.merge(f.machine, says("True"))
	f.run(mover.AwaitAwake)
	if f.src.get(f.machine) != nil || f.src.get(f.cluster) != nil {
		t.Error("the source was not emptied")
	}
	f.isPaused(f.dst, f.cluster, false)
}
