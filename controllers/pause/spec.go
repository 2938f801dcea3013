package pause

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/pause/request"
)

// These timeouts apply to resources written without the schema's defaults.
const (
	defaultAcknowledge = 5 * time.Minute
	defaultResume      = 2 * time.Minute
)

func specOf(p *v1alpha1.Pause) (s request.Spec, err error) {
	s = request.Spec{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Clusters: p.Spec.Clusters, Reason: p.Spec.Reason,
		Acknowledge: resource.Duration(p.Spec.Timeouts.Acknowledge, defaultAcknowledge), Resume: resource.Duration(p.Spec.Timeouts.Resume, defaultResume),
		AckKinds: resource.Durations(p.Spec.Timeouts.AcknowledgeKinds),
	}
	s.Selector, s.BySelector, err = resource.Selector(p.Spec.Selector)
	return s, err
}

// invalidPart returns the part of the spec that cannot be read, or an invalid selector that the
// schema permits, or nil.
func invalidPart(p *v1alpha1.Pause) *v1alpha1.UnreadablePart {
	if p.Unreadable.Spec != nil {
		return p.Unreadable.Spec
	}
	return resource.InvalidSelector(p.Spec.Selector, field.NewPath("spec", "selector"))
}

// kstatus returns the conditions of a Pause: Ready and Acknowledged while all objects have
// acknowledged the pause, Reconciling while some have not, and Stalled if a user is needed.
func kstatus(old []metav1.Condition, s v1alpha1.PauseStatus, generation int64) []metav1.Condition {
	acked := s.Phase == v1alpha1.PauseAcknowledged && s.Counts.Pending == 0
	stuck := s.Next != "" && !acked
	list := resource.Kstatus(old, generation, string(s.Phase),
		resource.Value{True: acked, Message: s.Message},
		resource.Value{True: !acked && !stuck && s.FinishedAt == nil, Message: s.Message},
		resource.Value{True: stuck, Message: s.Next})
	c := metav1.Condition{
		Type: v1alpha1.ConditionAcknowledged, Status: metav1.ConditionFalse, Reason: "Waiting", Message: resource.TruncateMessage(s.Message), ObservedGeneration: generation,
	}
	switch {
	case acked:
		c.Status, c.Reason = metav1.ConditionTrue, "Acknowledged"
	case s.Phase == v1alpha1.PauseTimedOut:
		c.Reason, c.Message = "TimedOut", resource.TruncateMessage(s.Message+". "+s.Next)
	case s.Phase == v1alpha1.PauseRestoring, s.Phase == v1alpha1.PauseResuming, s.Phase == v1alpha1.PauseReleased:
		c.Reason = "Released"
	}
	meta.SetStatusCondition(&list, c)
	return list
}
