package hold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

// ErrHeld: another holder's mark is on the root.
var ErrHeld = errors.New("it is held")

// ErrReplaced: the object of that name is not the one that was recorded.
var ErrReplaced = errors.New("it was deleted, and another object of its name was made")

// ErrChanged: the pause state of the root is no longer the one that was recorded, and it was not the holder's doing.
var ErrChanged = errors.New("somebody paused or resumed it after its pause state was recorded")

// Mark says on a root whose pause it is: the holder's id in an annotation, and the ID of the event log that knows the holder
// in another one. Log is empty in the marks of runs, and of moves that an older version began.
type Mark struct{ Annotation, Holder, Log string }

// ByMove is the mark of a move in a log.
func ByMove(id, log string) Mark {
	return Mark{Annotation: object.MoveAnnotation, Holder: id, Log: log}
}

// restoring begins the holder of a mark of a restore; the ID of the backup follows.
const restoring = "restore-"

// ByRestore is the mark of the restore of a backup. It holds an object alone, as a move does.
func ByRestore(backup string) Mark { return ByMove(restoring+backup, "backup-"+backup) }

// Restoring is the ID of the backup that the holder of a mark restores, if it is such a mark.
func Restoring(holder string) (backup string, ok bool) { return strings.CutPrefix(holder, restoring) }

func (m Mark) String() string {
	if m.Log == "" {
		return m.Holder
	}
	return m.Holder + " in event log " + m.Log
}

// Named is the holder as a user knows it.
func (m Mark) Named() string {
	if backup, ok := Restoring(m.Holder); ok {
		return "the restore of backup " + backup
	}
	switch m.Annotation {
	case object.MoveAnnotation:
		return "move " + m.String()
	case object.PauseAnnotation:
		return "a task of a run: " + m.Holder
	default:
		return "Pause " + m.Holder
	}
}

// set are the annotations of the mark, with everything that is written with it.
func (m Mark) set(root pause.Root) map[string]any {
	set := map[string]any{m.Annotation: m.Holder}
	if m.shared() {
		set[object.BeforeAnnotation] = strconv.FormatBool(root.Found)
	}
	if m.Log != "" {
		set[object.LogAnnotation] = m.Log
		if root.Found {
			set[object.FoundAnnotation] = ""
		}
	}
	return set
}

// unset are the annotations of a mark that is removed. The last one takes with it what all share.
func (m Mark) unset(last bool) map[string]any {
	switch {
	case m.shared() && !last:
		return map[string]any{m.Annotation: nil}
	case m.shared():
		return map[string]any{m.Annotation: nil, object.BeforeAnnotation: nil, object.EmptyingAnnotation: nil}
	default:
		return map[string]any{
			m.Annotation: nil, object.LogAnnotation: nil, object.FoundAnnotation: nil, object.OriginAnnotation: nil, object.EmptyingAnnotation: nil,
		}
	}
}

// ByRun is the mark of a task of a run.
func ByRun(key string) Mark { return Mark{Annotation: object.PauseAnnotation, Holder: key} }

// ByPause is the mark of a Pause. Its annotation is its own, so that several Pauses can hold a root.
func ByPause(uid, namespace, name string) Mark {
	return Mark{Annotation: object.PausePrefix + uid, Holder: namespace + "/" + name}
}

// shared says that others may hold the root too: a move holds it alone.
func (m Mark) shared() bool { return m.Annotation != object.MoveAnnotation }

// admits says whether a root that has a mark can get another one.
func (m Mark) admits(other Mark) bool {
	return m == other || m.shared() && other.shared() && m.Annotation != other.Annotation
}

// holders returns the marks that an object has, of whatever kind.
func holders(u *unstructured.Unstructured) []Mark {
	o := object.Observe(u)
	var marks []Mark
	if o.Mark != "" {
		marks = append(marks, ByMove(o.Mark, o.MarkLog))
	}
	return append(marks, Others(o)...)
}

// Others returns the marks of Pauses and of the task of a run that an object has.
func Others(o object.Observed) (marks []Mark) {
	for _, name := range slices.Sorted(maps.Keys(o.Holds)) {
		marks = append(marks, Mark{Annotation: name, Holder: o.Holds[name]})
	}
	return marks
}

// Holder returns the first of the marks that an object has; empty if it has none.
func Holder(u *unstructured.Unstructured) Mark {
	if marks := holders(u); len(marks) > 0 {
		return marks[0]
	}
	return Mark{}
}

// RootOf is a root as it was before anybody of scute paused it: where Pauses or a run hold it already, what they found. One that is held and not
// paused was resumed by somebody since, and what they found no longer counts.
func RootOf(u *unstructured.Unstructured) pause.Root {
	root := pause.RootOf(object.Observe(u))
	if before, held := u.GetAnnotations()[object.BeforeAnnotation]; held && len(holders(u)) > 0 {
		root.Found = root.Found && (before == "true" || setByOthers(u, root))
	}
	return root
}

// setByOthers: somebody else than scute has set the pause that is on a root, after the first holder did: see SetByOthers.
func setByOthers(u *unstructured.Unstructured, root pause.Root) bool {
	if root.ByField() {
		return SetByOthers(u, "f:spec", "f:paused")
	}
	return SetByOthers(u, "f:metadata", "f:annotations", "f:"+object.PausedAnnotation)
}

// Set pauses a root and marks it, in one write. Doing it again changes nothing.
func Set(ctx context.Context, c *kube.Cluster, t kube.Type, root pause.Root, mark Mark) error {
	for {
		// A write by anybody else in between has it look again: it may be another holder's.
		if err := set(ctx, c, t, root, mark); !apierrors.IsConflict(err) {
			return err
		}
	}
}

func set(ctx context.Context, c *kube.Cluster, t kube.Type, root pause.Root, mark Mark) error {
	u, err := c.Get(ctx, t, root.Ref.Namespace, root.Ref.Name)
	if err != nil {
		return err
	}
	o, held := object.Observe(u), holders(u)
	if o.UID != root.UID {
		return fmt.Errorf("%s: %w", root.Ref, ErrReplaced)
	}
	if other, alone := aloneBy(u, held, mark); alone {
		return fmt.Errorf("%s: %w by %s", root.Ref, ErrHeld, other.Named())
	}
	own := slices.Contains(held, mark)
	switch {
	case own && (pause.RootOf(o).Found || strings.HasPrefix(mark.Annotation, object.PausePrefix)):
		return nil // the mark came with the pause: where that is gone, somebody has resumed it since, and a Pause leaves it to them
	case !own && RootOf(u).Found != root.Found:
		return fmt.Errorf("%s: %w", root.Ref, ErrChanged)
	}
	// The resource version makes two holders' first writes exclude each other.
	return patch(ctx, c, t, root, paused(root, true), map[string]any{
		"resourceVersion": o.ResourceVersion, "annotations": mark.set(root),
	})
}

// aloneBy is the holder that does not let another mark onto an object: a move, or a run of an older version, which did not say what
// it found.
func aloneBy(u *unstructured.Unstructured, held []Mark, mark Mark) (by Mark, alone bool) {
	for _, other := range held {
		if !other.admits(mark) {
			return other, true
		}
	}
	if _, told := u.GetAnnotations()[object.BeforeAnnotation]; len(held) > 0 && !slices.Contains(held, mark) && !told {
		return held[0], true
	}
	return by, false
}

// Restore restores the pause state that was found on a root and removes the mark, in one write. A pause that somebody else has set since
// stays, and one that was found and that somebody else has lifted since is not set again. While others hold the root, only
// the mark is removed: the last of them restores. A root without the mark is not changed: it was never paused by this holder, or
// it has been restored before.
func Restore(ctx context.Context, c *kube.Cluster, t kube.Type, root pause.Root, mark Mark) error {
	for {
		u, err := c.Get(ctx, t, root.Ref.Namespace, root.Ref.Name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		held := holders(u)
		if u.GetUID() != root.UID || !slices.Contains(held, mark) {
			return nil
		}
		if before, told := u.GetAnnotations()[object.BeforeAnnotation]; told && mark.shared() {
			root.Found = before == "true" // a later holder may have found another state
		}
		if _, copied := Restoring(mark.Holder); !copied && pause.RootOf(object.Observe(u)).Found && setByOthers(u, root) {
			root.Found = true // of what is restored from a backup, the fields are those that were managed there
		}
		last, body := len(held) == 1, map[string]any(nil)
		if last && !root.Found {
			body = paused(root, false)
		}
		// The resource version keeps a process that stalled here from taking off what a later holder has written meanwhile.
		// A write by anybody else has it look again.
		err = patch(ctx, c, t, root, body, map[string]any{
			"resourceVersion": u.GetResourceVersion(),
			"annotations":     mark.unset(last),
		})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// paused is the part of a merge patch that sets or lifts the pause.
func paused(root pause.Root, on bool) map[string]any {
	if root.ByField() {
		if on {
			return map[string]any{"spec": map[string]any{"paused": true}}
		}
		return map[string]any{"spec": map[string]any{"paused": nil}}
	}
	if root.Found {
		return nil // a user's annotation, whatever its value: it is there and stays there
	}
	var value any
	if on {
		value = ""
	}
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{object.PausedAnnotation: value}}}
}

func patch(ctx context.Context, c *kube.Cluster, t kube.Type, root pause.Root, body, meta map[string]any) error {
	if body == nil {
		body = map[string]any{}
	}
	if own, ok := body["metadata"].(map[string]any); ok {
		into, _ := meta["annotations"].(map[string]any)
		from, _ := own["annotations"].(map[string]any)
		maps.Copy(into, from)
	}
	meta["uid"] = root.UID
	body["metadata"] = meta
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding the pause of %s: %w", root.Ref, err)
	}
	return c.Patch(ctx, "pause or resume "+root.Ref.String(), t, root.Ref.Namespace, root.Ref.Name, raw)
}
