package pause

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/internal/sleep"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
	"scute.dev/pause/hold"
	"scute.dev/view"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// pausedSwitch is the recorded state of an object that is paused by a switch: an annotation or a
// field.
type pausedSwitch struct {
	Ref object.Ref `json:"ref"`
	UID types.UID  `json:"uid"`
	// Annotation is the annotation that is the switch; if it is "", the switch is the field
	// spec.suspend.
	Annotation string `json:"annotation,omitempty"`
	// Previous is the value that the switch had before; null if it had none.
	Previous any `json:"previous"`
	// Found means that the switch was already on, so the task does not change it. By is the client
	// that turned it on.
	Found bool   `json:"found,omitempty"`
	By    string `json:"by,omitempty"`
}

// toggle returns the switch of an object. Its off value is the value that it had before.
func (s pausedSwitch) toggle() hold.Switch {
	if s.Annotation != "" {
		return hold.Switch{Annotation: s.Annotation, On: "true", Off: s.Previous, Exact: true}
	}
	return hold.Switch{Field: "suspend", On: true, Off: s.Previous, Exact: true}
}

// readSwitch reads the state of a switch. If an earlier attempt has set the switch, it returns the
// state that this attempt recorded.
func (h *pauser) readSwitch(ctx context.Context, s pausedSwitch, earlier []pausedSwitch) (pausedSwitch, error) {
	u, err := h.cluster.Get(ctx, s.Ref)
	if err != nil {
		return s, fmt.Errorf("with: reading %s: %w", s.Ref, err)
	}
	s.UID = u.GetUID()
	switch mark := hold.FirstHolder(u); mark {
	case hold.RunHolder(h.record.Holder):
		for _, was := range earlier {
			if was.Ref == s.Ref && was.UID == s.UID {
				return was, nil
			}
		}
		return s, task.Final(fmt.Errorf("%s has this task's pause annotation, but its earlier state was not recorded: restore it by hand and remove "+
			"annotation %s", s.Ref, object.PauseAnnotation))
	case hold.Holder{}:
	default:
		return s, fmt.Errorf("%s: %w by %s", s.Ref, hold.ErrHeld, mark.Describe())
	}
	s.Previous, s.Found = s.toggle().Read(u)
	if s.Found {
		s.By = s.toggle().Owner(u)
	}
	return s, nil
}

// restorableSwitches returns the recorded switches. It omits objects that other clients have
// deleted and switches that they have changed.
func (h *pauser) restorableSwitches(ctx context.Context) (kept []pausedSwitch, err error) {
	for _, s := range h.record.Switches {
		u, err := h.cluster.Get(ctx, s.Ref)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		value, _ := s.toggle().Read(u)
		held := hold.FirstHolder(u)
		if u.GetUID() == s.UID && (held == hold.RunHolder(h.record.Holder) || held == hold.Holder{} && value == s.Previous) {
			kept = append(kept, s)
		}
	}
	return kept, nil
}

// setSwitch turns a switch on and adds the holder's annotation or, if on is false, restores both.
// It does nothing if the switch was on before the task.
func (h *pauser) setSwitch(ctx context.Context, s pausedSwitch, on bool) error {
	if s.Found {
		return nil
	}
	write := s.toggle().Restore
	if on {
		write = s.toggle().Set
	}
	typ, err := h.cluster.Type(ctx, s.Ref)
	if apierrors.IsNotFound(err) && !on {
		return nil
	}
	if err != nil {
		return err
	}
	return write(ctx, h.cluster.Kube, typ, pause.Root{Ref: s.Ref, UID: s.UID}, hold.RunHolder(h.record.Holder))
}

// settleTime is how long an object must stay unchanged to count as settled.
const settleTime = 2 * time.Second

// waitSettled waits until no work is in progress on the objects and the objects do not change any
// more. The reason is that their controllers cannot acknowledge a pause.
func (h *pauser) waitSettled(ctx context.Context, limit time.Duration) error {
	if len(h.switches) == 0 {
		return nil
	}
	version := make(map[object.Ref]string)
	still := make(map[object.Ref]time.Time)
	pace := access.NewBackoff()
	for {
		var busy []pause.PendingObject
		for _, s := range h.switches {
			u, err := h.cluster.Get(ctx, s.Ref)
			if err != nil {
				if ctx.Err() == nil {
					return err
				}
				break
			}
			if v := u.GetResourceVersion(); version[s.Ref] != v {
				version[s.Ref], still[s.Ref] = v, time.Now()
			}
			_, on := s.toggle().Read(u)
			switch {
			case !on:
				return fmt.Errorf("%s is no longer paused, and scute did not resume it: find out what resets it, for example a parent Kustomization", s.Ref)
			case isWorking(u):
				busy = append(busy, pause.PendingObject{Ref: s.Ref, Reason: "its controller is reconciling it"})
			case time.Since(still[s.Ref]) < settleTime:
				busy = append(busy, pause.PendingObject{Ref: s.Ref, Reason: "it has just been changed"})
			}
		}
		if len(busy) == 0 && ctx.Err() == nil {
			return nil
		}
		h.call.Progress("waiting until the controllers have finished: " + mover.Summary(busy))
		if err := sleep.For(ctx, pace.NextBackOff()); err != nil {
			return fmt.Errorf("not every object settled within %s: %s: check the controllers of these objects, or raise with.acknowledge: %w",
				view.Duration(limit), mover.Summary(busy), err)
		}
	}
}

// isWorking reports whether work on an object is in progress, by the conventions of kstatus and
// Flux.
func isWorking(u *unstructured.Unstructured) bool {
	reconciling, _, _ := object.Condition(u, "Reconciling")
	ready, reason, _ := object.Condition(u, "Ready")
	return reconciling == object.True || ready == object.Unknown && reason == "Progressing"
}
