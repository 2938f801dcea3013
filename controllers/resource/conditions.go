package resource

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/supervise"
	"scute.dev/view"
)

// Value is the status and the message of one condition.
type Value struct {
	True    bool
	Message string
}

// Kstatus sets the conditions Ready, Reconciling and Stalled with the same reason in CamelCase. It
// returns a copy of old that keeps other conditions and the transition times of unchanged ones.
func Kstatus(old []metav1.Condition, generation int64, reason string, ready, reconciling, stalled Value) []metav1.Condition {
	list := slices.Clone(old)
	set := func(conditionType string, said Value) {
		c := metav1.Condition{
			Type: conditionType, Status: metav1.ConditionFalse, Reason: cmp.Or(reason, "Unknown"), Message: TruncateMessage(said.Message), ObservedGeneration: generation,
		}
		if said.True {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&list, c)
	}
	set(v1alpha1.ConditionReady, ready)
	set(v1alpha1.ConditionReconciling, reconciling)
	set(v1alpha1.ConditionStalled, stalled)
	return list
}

// WithThrottled sets the condition Throttled, except on an object that was never throttled.
func WithThrottled(list []metav1.Condition, why supervise.Throttled, generation int64) []metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionThrottled, Status: metav1.ConditionTrue, Reason: why.Reason, Message: why.Message, ObservedGeneration: generation,
	}
	if why.Reason == "" {
		if meta.FindStatusCondition(list, c.Type) == nil {
			return list
		}
		c.Status, c.Reason = metav1.ConditionFalse, "NotThrottled"
	}
	meta.SetStatusCondition(&list, c)
	return list
}

// Unreadable is the reason of conditions and events about an object that cannot be read.
const Unreadable = "Unreadable"

// Remedy states how to fix an object that cannot be read.
const Remedy = "correct the field; if the spec is immutable, delete the object and create another one"

// withReadable returns a copy of old with the condition Readable False if the spec cannot be read,
// and without it otherwise. fresh means that an event must be recorded: the spec has become
// unreadable, or the stored status is unreadable, which the next write fixes.
func withReadable(old []metav1.Condition, generation int64, unread v1alpha1.Unreadable) (list []metav1.Condition, fresh bool) {
	list = slices.Clone(old)
	wrong := unread.Spec
	if wrong == nil {
		meta.RemoveStatusCondition(&list, v1alpha1.ConditionReadable)
		return list, unread.Status != nil
	}
	fresh = meta.FindStatusCondition(old, v1alpha1.ConditionReadable) == nil
	meta.SetStatusCondition(&list, metav1.Condition{
		Type: v1alpha1.ConditionReadable, Status: metav1.ConditionFalse, Reason: Unreadable, Message: TruncateMessage(wrong.String()), ObservedGeneration: generation,
	})
	return list, fresh
}

// Ignored returns the conditions of an object that is ignored because its spec cannot be read.
func Ignored(old []metav1.Condition, generation int64, wrong *v1alpha1.UnreadablePart) []metav1.Condition {
	said := Value{Message: wrong.String() + ": " + Remedy}
	return Kstatus(old, generation, Unreadable, said, Value{}, Value{True: true, Message: said.Message})
}

// TruncateNote cuts the note of an event to the API's limit of 1 KiB.
func TruncateNote(s string) string { return view.Truncate(s, 1000) }

// TruncateMessage cuts a message far below the limits of an object and of a condition's message.
func TruncateMessage(s string) string { return view.Truncate(s, 16<<10) }
