package hold

import (
	"context"
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

// errEmptied: a move deletes what belongs to a root.
var errEmptied = errors.New("it stays paused, because a move has begun to delete what belongs to it")

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

// set returns the annotations that are written with the mark. Only roots can have several holders, which share what was found.
func (m Mark) set(root pause.Root) map[string]any {
	set := map[string]any{m.Annotation: m.Holder}
	if m.shared() && pause.IsRoot(root.Ref) {
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

// unset returns the annotations to delete. The last mark also deletes the shared ones.
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

// RootOf returns a root with the pause state from before every holder. Where Pauses or a run hold it, that is the state that the first of them
// recorded. If the root is held and not paused, somebody has resumed it since, and the recorded state no longer counts.
func RootOf(u *unstructured.Unstructured) pause.Root {
	root := pause.RootOf(object.Observe(u))
	root.Found = switchOf(root.Ref).found(u)
	return root
}

// Set pauses a root and marks it, in one write. Doing it again changes nothing.
func Set(ctx context.Context, c *kube.Cluster, t kube.Type, root pause.Root, mark Mark) error {
	return switchOf(root.Ref).Set(ctx, c, t, root, mark)
}

// Set turns the switch of an object on and marks the object, in one write. Doing it again changes nothing.
func (s Switch) Set(ctx context.Context, c *kube.Cluster, t kube.Type, root pause.Root, mark Mark) error {
	for {
		u, err := c.Get(ctx, t, root.Ref.Namespace, root.Ref.Name)
		if err != nil {
			return err
		}
		held := holders(u)
		if u.GetUID() != root.UID {
			return fmt.Errorf("%s: %w", root.Ref, ErrReplaced)
		}
		if other, alone := aloneBy(u, held, mark); alone {
			return fmt.Errorf("%s: %w by %s", root.Ref, ErrHeld, other.Named())
		}
		own := slices.Contains(held, mark)
		value, on := s.Read(u)
		switch {
		case own && (on || strings.HasPrefix(mark.Annotation, object.PausePrefix)):
			return nil // the mark came with the pause: where that is gone, somebody has resumed it since, and a Pause leaves it to them
		case !own && (s.found(u) != root.Found || s.Exact && value != s.Off):
			return fmt.Errorf("%s: %w", root.Ref, ErrChanged)
		}
		theirs := s.Annotation != "" && root.Found // a user's annotation keeps its value
		// The resource version makes two holders' first writes exclude each other. After a write by anybody else, the object is read again.
		if err := s.write(ctx, c, t, root, u.GetResourceVersion(), mark.set(root), !theirs, s.On); !apierrors.IsConflict(err) {
			return err
		}
	}
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

// Restore restores the pause state that was found on a root and removes the mark, in one write. See Switch.Restore.
func Restore(ctx context.Context, c *kube.Cluster, t kube.Type, root pause.Root, mark Mark) error {
	return switchOf(root.Ref).Restore(ctx, c, t, root, mark)
}

// Restore writes back the value of the switch that was found on an object and removes the mark, in one write. A pause that somebody else has
// set since stays, and a pause that was found and that somebody else has lifted since is not set again. While others hold the object,
// only the mark is removed: the last of them restores. An object without the mark is not changed: it was never paused by this holder, or it
// has been restored before. A root that a move is emptying is not changed either, unless by that move.
func (s Switch) Restore(ctx context.Context, c *kube.Cluster, t kube.Type, root pause.Root, mark Mark) error {
	for {
		u, err := c.Get(ctx, t, root.Ref.Namespace, root.Ref.Name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if u.GetUID() != root.UID {
			return nil
		}
		if by := u.GetAnnotations()[object.EmptyingAnnotation]; by != "" && mark.shared() {
			return fmt.Errorf("%s: %w: %s", root.Ref, errEmptied, by)
		}
		held := holders(u)
		if !slices.Contains(held, mark) {
			return nil
		}
		found := root.Found // not what an attempt before a conflict has seen
		if before, told := u.GetAnnotations()[object.BeforeAnnotation]; told && mark.shared() {
			found = before == "true" // a later holder may have found another state
		}
		_, on := s.Read(u)
		if _, copied := Restoring(mark.Holder); !copied && on && s.setByOthers(u) {
			found = true // of what is restored from a backup, the fields are those that were managed there
		}
		last := len(held) == 1
		// The resource version keeps a process that stalled here from removing what a later holder has written meanwhile.
		// After a write by anybody else, the object is read again.
		if err := s.write(ctx, c, t, root, u.GetResourceVersion(), mark.unset(last), last && !found, s.Off); !apierrors.IsConflict(err) {
			return err
		}
	}
}
