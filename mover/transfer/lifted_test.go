package transfer

import (
	"strings"
	"testing"

	"scute.dev/kube/object"
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

// While somebody lifts the pause a MachineSet makes a Machine again. The move stops because of it, with the source paused: else
// the Machine would come again whenever a human takes it away. Nothing was deleted yet, so the source does not say that it is.
func TestASourceThatIsNotInOrderIsPausedAgain(t *testing.T) {
	f := moved(t, mover.Verified{})
	late := capi("Machine", "late")
	for _, ref := range []object.Ref{f.cluster, f.machine} {
		f.src.merge(ref, obj{"status": obj{"conditions": []any{obj{"type": "Paused", "status": "True"}}}})
	}
	f.src.merge(f.cluster, obj{"spec": obj{"paused": nil}})
	f.src.put(late, ownedBy(f.cluster, f.src.get(f.cluster).GetUID()))
	f.step()
	f.isPaused(f.src, f.cluster, true)
	message, next := f.step()
	f.stranded(message, next, late.String())
	if isEmptying(f.src.get(f.cluster)) {
		t.Error("the source says that it is being emptied")
	}
	f.there(f.src, f.machine)
	f.src.drop(late)
	f.run(mover.AwaitAwake)
}
