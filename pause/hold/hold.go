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

// ErrHeld is returned if the root has the annotation of another holder that does not admit this
// one.
var ErrHeld = errors.New("it is held")

// ErrReplaced is returned if the recorded object was deleted and another object has its name.
var ErrReplaced = errors.New("it was deleted and recreated with the same name")

// ErrChanged is returned if a client other than the holder changed the pause state after it was recorded.
var ErrChanged = errors.New("another client paused or resumed it after its pause state was recorded")

// errEmptying is returned for a root whose objects a move is deleting.
var errEmptying = errors.New("it stays paused, because a move has started to delete its dependents")

// Holder identifies the holder of a pause on a root. The annotation named Annotation contains ID,
// and another one LogID, the ID of the event log with the holder. LogID is empty for runs, Pauses,
// and local moves.
type Holder struct{ Annotation, ID, LogID string }

// MoveHolder returns the holder for a move in a log.
func MoveHolder(id, log string) Holder {
	return Holder{Annotation: object.MoveAnnotation, ID: id, LogID: log}
}

const restorePrefix = "restore-"

// RestoreHolder returns the holder for the restore of a backup. Like a move, it must be the only
// holder of an object.
func RestoreHolder(backup string) Holder { return MoveHolder(restorePrefix+backup, "backup-"+backup) }

// RestoredBackup returns the ID of the backup that a holder restores; ok is false for other holders.
func RestoredBackup(holder string) (backup string, ok bool) {
	return strings.CutPrefix(holder, restorePrefix)
}

func (m Holder) String() string {
	if m.LogID == "" {
		return m.ID
	}
	return m.ID + " in event log " + m.LogID
}

// Describe returns the holder in words for a user.
func (m Holder) Describe() string {
	if backup, ok := RestoredBackup(m.ID); ok {
		return "the restore of backup " + backup
	}
	switch m.Annotation {
	case object.MoveAnnotation:
		return "move " + m.String()
	case object.PauseAnnotation:
		return "a task of a run: " + m.ID
	default:
		return "Pause " + m.ID
	}
}

// annotationsToSet returns the annotations that record the holder. They include the earlier state
// only for roots, because only roots can have several holders.
func (m Holder) annotationsToSet(root pause.Root) map[string]any {
	set := map[string]any{m.Annotation: m.ID}
	if m.isShared() && pause.IsRoot(root.Ref) {
		set[object.PausedBeforeAnnotation] = strconv.FormatBool(root.Found)
	}
	if m.LogID != "" {
		set[object.LogAnnotation] = m.LogID
		if root.Found {
			set[object.FoundPausedAnnotation] = ""
		}
	}
	return set
}

func (m Holder) annotationsToRemove(last bool) map[string]any {
	switch {
	case m.isShared() && !last:
		return map[string]any{m.Annotation: nil}
	case m.isShared():
		return map[string]any{m.Annotation: nil, object.PausedBeforeAnnotation: nil, object.EmptyingAnnotation: nil}
	default:
		return map[string]any{
			m.Annotation: nil, object.LogAnnotation: nil, object.FoundPausedAnnotation: nil, object.OriginAnnotation: nil, object.EmptyingAnnotation: nil,
		}
	}
}

// RunHolder returns the holder for a task of a run.
func RunHolder(key string) Holder { return Holder{Annotation: object.PauseAnnotation, ID: key} }

// PauseHolder returns the holder for a Pause. Each Pause has its own annotation, so that several can hold a root.
func PauseHolder(uid, namespace, name string) Holder {
	return Holder{Annotation: object.PausePrefix + uid, ID: namespace + "/" + name}
}

func (m Holder) isShared() bool { return m.Annotation != object.MoveAnnotation }

// admits reports whether the holder other may hold a root that m already holds.
func (m Holder) admits(other Holder) bool {
	return m == other || m.isShared() && other.isShared() && m.Annotation != other.Annotation
}

func holders(u *unstructured.Unstructured) []Holder {
	o := object.Observe(u)
	var marks []Holder
	if o.MoveID != "" {
		marks = append(marks, MoveHolder(o.MoveID, o.MoveLogID))
	}
	return append(marks, SharedHolders(o)...)
}

// SharedHolders returns the Pauses and the task of a run that hold an object.
func SharedHolders(o object.Observed) (marks []Holder) {
	for _, name := range slices.Sorted(maps.Keys(o.PauseHolders)) {
		marks = append(marks, Holder{Annotation: name, ID: o.PauseHolders[name]})
	}
	return marks
}

// FirstHolder returns the first holder of an object, or the zero value if there is none.
func FirstHolder(u *unstructured.Unstructured) Holder {
	if marks := holders(u); len(marks) > 0 {
		return marks[0]
	}
	return Holder{}
}

// RootOf returns a root with the pause state that it had before any holder paused it, which the
// first holder has recorded. If the root is held but not paused, another client has resumed it, and
// the recorded state no longer applies.
func RootOf(u *unstructured.Unstructured) pause.Root {
	root := pause.RootOf(object.Observe(u))
	root.Found = SwitchOf(root.Ref).wasPaused(u)
	return root
}

// Set turns the switch of an object on and adds the holder's annotations in one write. It is idempotent.
func (s Switch) Set(ctx context.Context, c *kube.Cluster, t kube.Type, root pause.Root, mark Holder) error {
	for {
		u, err := c.Get(ctx, t, root.Ref.Namespace, root.Ref.Name)
		if err != nil {
			return err
		}
		held := holders(u)
		if u.GetUID() != root.UID {
			return fmt.Errorf("%s: %w", root.Ref, ErrReplaced)
		}
		if other, exclusive := exclusiveHolder(u, held, mark); exclusive {
			return fmt.Errorf("%s: %w by %s", root.Ref, ErrHeld, other.Describe())
		}
		own := slices.Contains(held, mark)
		value, on := s.Read(u)
		switch {
		case own && (on || strings.HasPrefix(mark.Annotation, object.PausePrefix)):
			return nil // already paused, or resumed by another client, which a Pause does not override
		case !own && (s.wasPaused(u) != root.Found || s.Exact && value != s.Off):
			return fmt.Errorf("%s: %w", root.Ref, ErrChanged)
		}
		theirs := s.Annotation != "" && root.Found // keep the value of a user's annotation
		// The resource version makes the first writes of two holders conflict. After a conflict,
		// the object is read again.
		if err := s.write(ctx, c, t, root, u.GetResourceVersion(), mark.annotationsToSet(root), !theirs, s.On); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// exclusiveHolder returns the first holder in held that does not admit the holder mark. That is a
// move, or any holder if the record of the earlier state was removed, because the next holder would
// then mistake the first holder's pause for a user's.
func exclusiveHolder(u *unstructured.Unstructured, held []Holder, mark Holder) (by Holder, exclusive bool) {
	for _, other := range held {
		if !other.admits(mark) {
			return other, true
		}
	}
	if _, told := u.GetAnnotations()[object.PausedBeforeAnnotation]; len(held) > 0 && !slices.Contains(held, mark) && !told {
		return held[0], true
	}
	return by, false
}

// Restore restores the earlier value of the switch and removes the holder's annotations in one
// write. It does not revert changes of other clients: a pause that another client has set stays,
// and a pause that another client has removed is not set again. While other holders remain, it
// removes only this holder's annotation. If the object does not have the holder's annotation,
// Restore changes nothing, because the holder never paused the object, or has already restored it.
// For a root whose objects a move is deleting, it returns an error unless the holder is a move.
func (s Switch) Restore(ctx context.Context, c *kube.Cluster, t kube.Type, root pause.Root, mark Holder) error {
	for {
		u, err := c.Find(ctx, t, root.Ref)
		if u == nil || u.GetUID() != root.UID {
			return err
		}
		if by := u.GetAnnotations()[object.EmptyingAnnotation]; by != "" && mark.isShared() {
			return fmt.Errorf("%s: %w: %s", root.Ref, errEmptying, by)
		}
		held := holders(u)
		if !slices.Contains(held, mark) {
			return nil
		}
		found := root.Found // a copy, because a retry starts from the record
		if before, told := u.GetAnnotations()[object.PausedBeforeAnnotation]; told && mark.isShared() {
			found = before == "true" // a later holder may have recorded another state
		}
		_, on := s.Read(u)
		if _, copied := RestoredBackup(mark.ID); !copied && on && s.isSetByOthers(u) {
			found = true // not for the restore of a backup, whose managed fields come from the backup
		}
		last := len(held) == 1
		// The resource version prevents a stalled process from overwriting a later holder. After a
		// conflict, the object is read again.
		if err := s.write(ctx, c, t, root, u.GetResourceVersion(), mark.annotationsToRemove(last), last && !found, s.Off); !apierrors.IsConflict(err) {
			return err
		}
	}
}
