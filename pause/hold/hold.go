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

// ErrHeld is returned if the root has another holder's mark.
var ErrHeld = errors.New("it is held")

// ErrReplaced is returned if the object is not the recorded one, but another one with the same name.
var ErrReplaced = errors.New("it was deleted, and another object of its name was made")

// ErrChanged is returned if a client other than the holder has changed the recorded pause state of the root.
var ErrChanged = errors.New("somebody paused or resumed it after its pause state was recorded")

// errEmptied is returned for a root whose objects a move is deleting.
var errEmptied = errors.New("it stays paused, because a move has begun to delete what belongs to it")

// Mark identifies the holder of a pause on a root. One annotation contains the holder's ID, and another one the ID of the event log with the holder.
// Log is empty in the marks of runs and Pauses, and of moves that an older version started.
type Mark struct{ Annotation, Holder, Log string }

// ByMove returns the mark of a move in a log.
func ByMove(id, log string) Mark {
	return Mark{Annotation: object.MoveAnnotation, Holder: id, Log: log}
}

// restoring is the prefix of a holder that restores a backup. The ID of the backup follows.
const restoring = "restore-"

// ByRestore returns the mark of the restore of a backup. It holds an object alone, as a move does.
func ByRestore(backup string) Mark { return ByMove(restoring+backup, "backup-"+backup) }

// Restoring returns the ID of the backup that a holder restores; ok is false for other holders.
func Restoring(holder string) (backup string, ok bool) { return strings.CutPrefix(holder, restoring) }

func (m Mark) String() string {
	if m.Log == "" {
		return m.Holder
	}
	return m.Holder + " in event log " + m.Log
}

// Named returns the holder in words for a user.
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

// set returns the annotations to write for the mark. Only roots can have several holders, which share the earlier state.
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

// unset returns the annotations to delete. The last mark also deletes the shared annotations.
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

// ByRun returns the mark of a task of a run.
func ByRun(key string) Mark { return Mark{Annotation: object.PauseAnnotation, Holder: key} }

// ByPause returns the mark of a Pause. Each Pause has another annotation, so that several Pauses can hold a root.
func ByPause(uid, namespace, name string) Mark {
	return Mark{Annotation: object.PausePrefix + uid, Holder: namespace + "/" + name}
}

// shared reports whether other holders may hold the root too, which a move does not allow.
func (m Mark) shared() bool { return m.Annotation != object.MoveAnnotation }

// admits reports whether a root with the mark m may get the mark other.
func (m Mark) admits(other Mark) bool {
	return m == other || m.shared() && other.shared() && m.Annotation != other.Annotation
}

// holders returns all marks of an object.
func holders(u *unstructured.Unstructured) []Mark {
	o := object.Observe(u)
	var marks []Mark
	if o.Mark != "" {
		marks = append(marks, ByMove(o.Mark, o.MarkLog))
	}
	return append(marks, Others(o)...)
}

// Others returns the marks of Pauses and of a task of a run on an object.
func Others(o object.Observed) (marks []Mark) {
	for _, name := range slices.Sorted(maps.Keys(o.Holds)) {
		marks = append(marks, Mark{Annotation: name, Holder: o.Holds[name]})
	}
	return marks
}

// Holder returns the first mark of an object; empty if it has none.
func Holder(u *unstructured.Unstructured) Mark {
	if marks := holders(u); len(marks) > 0 {
		return marks[0]
	}
	return Mark{}
}

// RootOf returns a root with the pause state from before every holder. If Pauses or a run hold it, this is the state that the first holder recorded.
// If it is held but not paused, somebody has resumed it since, and the recorded state is obsolete.
func RootOf(u *unstructured.Unstructured) pause.Root {
	root := pause.RootOf(object.Observe(u))
	root.Found = switchOf(root.Ref).found(u)
	return root
}

// Set pauses a root and adds the mark in one write. It is idempotent.
func Set(ctx context.Context, c *kube.Cluster, t kube.Type, root pause.Root, mark Mark) error {
	return switchOf(root.Ref).Set(ctx, c, t, root, mark)
}

// Set turns the switch of an object on and adds the mark in one write. It is idempotent.
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
			return nil // already paused, or resumed by another client after this Pause, which a Pause does not override
		case !own && (s.found(u) != root.Found || s.Exact && value != s.Off):
			return fmt.Errorf("%s: %w", root.Ref, ErrChanged)
		}
		theirs := s.Annotation != "" && root.Found // a user's annotation keeps its value
		// The resource version makes the first writes of two holders conflict. After another client's write, the object is read again.
		if err := s.write(ctx, c, t, root, u.GetResourceVersion(), mark.set(root), !theirs, s.On); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// aloneBy returns the holder that does not admit the mark: a move, or a run of an older version, which did not record the earlier state.
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

// Restore restores the earlier pause state of a root and removes the mark in one write. See Switch.Restore.
func Restore(ctx context.Context, c *kube.Cluster, t kube.Type, root pause.Root, mark Mark) error {
	return switchOf(root.Ref).Restore(ctx, c, t, root, mark)
}

// Restore restores the earlier value of the switch and removes the mark in one write. It keeps a pause that another client has set since, and does
// not set a pause again that another client has removed. While the object has other holders, it only removes the mark: the last holder restores. It
// does not change an object without the mark, because this holder has not paused it or has restored it already. It returns an error for a root that a
// move is emptying, unless the mark is that of a move.
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
		found := root.Found // a copy, because an attempt after a conflict starts from the record
		if before, told := u.GetAnnotations()[object.BeforeAnnotation]; told && mark.shared() {
			found = before == "true" // the last holder may have recorded another state
		}
		_, on := s.Read(u)
		if _, copied := Restoring(mark.Holder); !copied && on && s.setByOthers(u) {
			found = true // not for the restore of a backup, because the managed fields are those from the backup
		}
		last := len(held) == 1
		// If this process stalls, the resource version prevents it from overwriting a later holder. After another client's write, the object is read
		// again.
		if err := s.write(ctx, c, t, root, u.GetResourceVersion(), mark.unset(last), last && !found, s.Off); !apierrors.IsConflict(err) {
			return err
		}
	}
}
