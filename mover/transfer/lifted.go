package transfer

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

// pausedAgain are the roots that were not paused any more. All of them are paused again before anything is said of it: a tool that lifts
// one pause lifts that of every Cluster, and each that is left has controllers that make machines. The zero value is ready for use.
type pausedAgain struct {
	mu     sync.Mutex
	refs   []object.Ref
	failed map[object.Ref]error
}

// pauseAgain pauses a root that is not paused any more, and says whether it was one.
func (t *Transfer) pauseAgain(ctx context.Context, again *pausedAgain, root pause.Root, typ kube.Type, u *unstructured.Unstructured) bool {
	if pause.RootOf(object.Observe(u)).Found {
		return false
	}
	err := hold.Set(ctx, t.Source, typ, root, t.mark())
	again.mu.Lock()
	defer again.mu.Unlock()
	again.refs = append(again.refs, root.Ref)
	if err == nil {
		t.lifted.Store(true)
		return true
	}
	if again.failed == nil {
		again.failed = make(map[object.Ref]error)
	}
	again.failed[root.Ref] = err
	return true
}

// err is why one of them could not be paused, else that they were not paused; nil where all were.
func (p *pausedAgain) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortFunc(p.refs, object.Compare)
	for _, ref := range p.refs {
		if err := p.failed[ref]; err != nil {
			return err
		}
	}
	switch n := len(p.refs); n {
	case 0:
		return nil
	case 1:
		return liftedPause(p.refs[0], "it was not paused")
	default:
		return liftedPause(p.refs[0], fmt.Sprintf("it was not paused, and %d more were not", n-1))
	}
}

func liftedPause(ref object.Ref, why string) error {
	return &waitError{
		what: "somebody lifted the pause of the source, and it was set again; nothing is deleted before the source is at rest: " + ref.String() + ": " + why,
		next: "find out what lifts it (a GitOps tool?), and stop that for the time of the move",
	}
}
