package transfer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// strandedError: a cluster does not hold what the log says, and the step changed nothing because of it. A later try finds
// out whether they agree again.
type strandedError struct {
	what string
	next string
}

func (e *strandedError) Error() string { return e.what }

// strand names the objects in a stable order, so that the same disagreement gives the same words.
func strand(found []mover.Wait, what, next string) error {
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b mover.Wait) int { return object.Compare(a.Ref, b.Ref) })
	const named = 5
	var said []string
	for _, w := range found[:min(len(found), named)] {
		said = append(said, w.Ref.String()+" ("+w.Why+")")
	}
	if more := len(found) - named; more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return &strandedError{what: what + ": " + strings.Join(said, "; "), next: next}
}

// keepLog is what to do where the clusters show that the move had gone further than the log knows.
func keepLog(s mover.Spec) string {
	return "do not unpause or delete anything by hand. If the event log was restored from a backup, bring the newer log back; if there is none, " +
		mover.Command(s, mover.Forward) + " empties the source and resumes the target, if the target has everything"
}

type objects = map[object.Ref]*unstructured.Unstructured

// originals makes sure that the source still holds, whole, what the given objects of the target are copies of. A copy
// whose original is gone, or was released to be deleted by a move, is the only one there is: the log may have gone back
// behind Verified.
func (t *Transfer) originals(s *mover.State, source, copies objects) error {
	var only []mover.Wait
	for _, item := range s.Plan {
		if c := copies[item.Ref]; c == nil || !t.isOurs(c) {
			continue
		}
		if why := notHeld(item, source[item.Ref]); why != "" {
			only = append(only, mover.Wait{Ref: item.Ref, Why: why})
		}
	}
	return strand(only, "the rollback stopped before it removed anything, because the target has the only copy of",
		keepLog(s.Spec)+". If somebody deleted the objects at the source on purpose, delete their copies on the target too; the rollback continues by itself")
}

// notHeld says why an object of the source is not the whole one of the plan; "" when it is.
func notHeld(item mover.Item, have *unstructured.Unstructured) string {
	if have == nil {
		return "it is gone at the source"
	}
	if have.GetUID() != item.UID {
		return "another object of its name is at the source"
	}
	if released(have) {
		return "it was released at the source to be deleted"
	}
	return ""
}

// released says that a move has taken the finalizers of an object off to delete it.
func released(u *unstructured.Unstructured) bool {
	_, marked := u.GetAnnotations()[object.DeleteForMoveAnnotation]
	return marked
}

// held makes sure, before anything is deleted at the source, that the target still holds the copies of what is there, by their
// UIDs, or every object that was created or adopted there.
func held(s *mover.State, there heads, everything bool) error {
	var missing []mover.Wait
	for _, item := range s.Plan {
		if !everything && !remains(s, item) {
			continue
		}
		why := ""
		switch have := there[item.Ref]; {
		case have.uid == "":
			why = "it is gone on the target"
		case have.uid != s.Created[item.Ref]:
			why = "another object of its name is on the target"
		case have.deleting:
			why = "it is being deleted on the target"
		}
		if why != "" {
			missing = append(missing, mover.Wait{Ref: item.Ref, Why: why})
		}
	}
	return strand(missing, "nothing more is deleted at the source, because the target no longer holds what was created there",
		"find out what removed it and restore the target, its etcd from a backup for example, so that the same objects are there again: the move continues by itself. "+
			"If it cannot be restored, "+mover.Command(s.Spec, mover.Back)+" resumes the source, if nothing was deleted there yet. "+
			"Leave the source paused: it holds the only copy of what is not on the target")
}

// mayUnpause makes sure that no root is unpaused that a move has begun to empty. A move that got as far as a plan held its
// roots all along: one that is gone was deleted by the move itself, as a newer log would say.
func (t *Transfer) mayUnpause(ctx context.Context, s *mover.State) error {
	var emptied []mover.Wait
	var mu sync.Mutex
	err := t.eachRoot(ctx, s.Roots, func(_ context.Context, root pause.Root, _ kube.Type, u *unstructured.Unstructured) error {
		why := ""
		switch missing := u == nil || u.GetUID() != root.UID; {
		case missing && len(s.Plan) > 0:
			why = "it is gone"
		case missing:
		case isEmptying(u):
			why = "what belongs to it is being deleted by move " + u.GetAnnotations()[object.EmptyingAnnotation]
		}
		if why != "" {
			mu.Lock()
			defer mu.Unlock()
			emptied = append(emptied, mover.Wait{Ref: root.Ref, Why: why})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return strand(emptied, "the source stays paused, because a move has begun to empty it", keepLog(s.Spec))
}
