package hold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

// ErrHeld: another holder's mark is on the root.
var ErrHeld = errors.New("it is held by another undertaking of scute")

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

func (m Mark) String() string {
	if m.Log == "" {
		return m.Holder
	}
	return m.Holder + " in event log " + m.Log
}

// set and unset are the annotations of the mark, with everything that is written with it.
func (m Mark) set(root pause.Root) map[string]any {
	set := map[string]any{m.Annotation: m.Holder}
	if m.Log != "" {
		set[object.LogAnnotation] = m.Log
		if root.Found {
			set[object.FoundAnnotation] = ""
		}
	}
	return set
}

func (m Mark) unset() map[string]any {
	return map[string]any{
		m.Annotation: nil, object.LogAnnotation: nil, object.FoundAnnotation: nil, object.OriginAnnotation: nil, object.EmptyingAnnotation: nil,
	}
}

// ByRun is the mark of a task of a run.
func ByRun(key string) Mark { return Mark{Annotation: object.PauseAnnotation, Holder: key} }

// Holder returns whose mark an object has, of whatever kind; empty if it has none.
func Holder(u *unstructured.Unstructured) Mark {
	annotations := u.GetAnnotations()
	for _, name := range []string{object.MoveAnnotation, object.PauseAnnotation} {
		if id := annotations[name]; id != "" {
			return Mark{Annotation: name, Holder: id, Log: annotations[object.LogAnnotation]}
		}
	}
	return Mark{}
}

// Set pauses a root and marks it, in one write. Doing it again changes nothing.
func Set(ctx context.Context, c *kube.Cluster, t kube.Type, root pause.Root, mark Mark) error {
	u, err := c.Get(ctx, t, root.Ref.Namespace, root.Ref.Name)
	if err != nil {
		return err
	}
	o, held := object.Observe(u), Holder(u)
	switch {
	case o.UID != root.UID:
		return fmt.Errorf("%s: %w", root.Ref, ErrReplaced)
	case held.Holder != "" && held != mark:
		return fmt.Errorf("%s: %w: %s", root.Ref, ErrHeld, held)
	case held == mark && pause.RootOf(o).Found:
		return nil
	case held.Holder == "" && pause.RootOf(o).Found != root.Found:
		return fmt.Errorf("%s: %w", root.Ref, ErrChanged)
	}
	// The resource version makes two holders' first writes exclude each other.
	return patch(ctx, c, t, root, paused(root, true), map[string]any{
		"resourceVersion": o.ResourceVersion, "annotations": mark.set(root),
	})
}

// Restore restores the pause state that was found on a root and removes the mark, in one write. A root without the mark
// is not changed: it was never paused by this holder, or it has been restored before.
func Restore(ctx context.Context, c *kube.Cluster, t kube.Type, root pause.Root, mark Mark) error {
	for {
		u, err := c.Get(ctx, t, root.Ref.Namespace, root.Ref.Name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if u.GetUID() != root.UID || Holder(u) != mark {
			return nil
		}
		// The resource version keeps a process that stalled here from taking off what a later holder has written meanwhile.
		// A write by anybody else has it look again.
		err = patch(ctx, c, t, root, paused(root, root.Found), map[string]any{
			"resourceVersion": u.GetResourceVersion(),
			"annotations":     mark.unset(),
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
