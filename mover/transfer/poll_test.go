package transfer

import (
	"net/http"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// TestTheTargetKnowsTheCopiesFirst checks that the verification waits until the controllers of the target have
// acknowledged each copy, and touches copies that are not acknowledged. A controller whose cache lacks a copy would
// create another machine once the copies are active.
func TestTheTargetKnowsTheCopiesFirst(t *testing.T) {
	f := moved(t, mover.AllCreated{})
	says := func(api *fakeAPI, ref object.Ref, conditions ...any) {
		api.merge(ref, obj{"status": obj{"conditions": conditions}})
	}
	paused := obj{"type": "Paused", "status": "True"}
	says(f.src, f.cluster, paused)
	says(f.src, f.machine, paused)
	verify := func() mover.Outcome {
		o, err := f.transfer.Perform(t.Context(), f.state, mover.VerifyCopies, nil)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}

	says(f.dst, f.machine)
	pending := func() []object.Ref {
		unseen, ok := verify().(mover.CopiesUnacknowledged)
		if !ok {
			t.Fatal("verified before the target has acknowledged the Machine")
		}
		var refs []object.Ref
		for _, w := range unseen.Pending {
			refs = append(refs, w.Ref)
		}
		return refs
	}
	if got := pending(); !slices.Equal(got, []object.Ref{f.machine}) {
		t.Errorf("pending = %v, want the Machine", got)
	}
	var mu sync.Mutex
	var woken []string
	f.dst.hook = func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPatch {
			woken = append(woken, path.Base(r.URL.Path))
		}
	}
	f.transfer.ackPolls.first = time.Now().Add(-time.Second)
	for range 2 {
		pending()
	}
	if !slices.Equal(woken, []string{"a-1", "a-1"}) { // an annotation is added and removed
		t.Errorf("%v were touched, want only the Machine", woken)
	}

	says(f.dst, f.machine, paused)
	if _, ok := verify().(mover.VerifyDone); !ok {
		t.Error("not verified although all copies are acknowledged")
	}
}
