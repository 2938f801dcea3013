package conditions

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/supervise"
)

// Said is what is said of one condition.
type Said struct {
	True    bool
	Message string
}

// Kstatus are the conditions Ready, Reconciling and Stalled, all for one reason: a word in CamelCase. The times of those
// that stay as they are stay too, and so do conditions of others; old is not changed.
func Kstatus(old []metav1.Condition, generation int64, reason string, ready, reconciling, stalled Said) []metav1.Condition {
	list := slices.Clone(old)
	set := func(conditionType string, said Said) {
		c := metav1.Condition{
			Type: conditionType, Status: metav1.ConditionFalse, Reason: cmp.Or(reason, "Unknown"), Message: Long(said.Message), ObservedGeneration: generation,
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

// Throttled adds the condition Throttled to a list. What never was throttled does not have it.
func Throttled(list []metav1.Condition, why supervise.Throttled, generation int64) []metav1.Condition {
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

// Unreadable is the reason of everything that follows from an object that cannot be read.
const Unreadable = "Unreadable"

// Remedy is what to do about an object that cannot be read.
const Remedy = "correct the field; where the spec is fixed, delete the object and make another"

// FullRemedy is what to do where the log takes nothing new.
const FullRemedy = "raise the limit of the event log (log.maxBytes of the chart)"

// Full is the message of an object that waits because the log takes nothing new, as err says.
func Full(err error) string { return "waiting: " + Short(err.Error()) }

// readable says that the spec of an object cannot be read, or takes back that it was said; old is not changed. A status that
// cannot be read is written with these conditions, and then it can be. fresh says that there is something to tell.
func readable(old []metav1.Condition, generation int64, unread v1alpha1.Unreadable) (list []metav1.Condition, fresh bool) {
	list = slices.Clone(old)
	wrong := unread.Spec
	if wrong == nil {
		meta.RemoveStatusCondition(&list, v1alpha1.ConditionReadable)
		return list, unread.Status != nil
	}
	fresh = meta.FindStatusCondition(old, v1alpha1.ConditionReadable) == nil
	meta.SetStatusCondition(&list, metav1.Condition{
		Type: v1alpha1.ConditionReadable, Status: metav1.ConditionFalse, Reason: Unreadable, Message: Long(wrong.String()), ObservedGeneration: generation,
	})
	return list, fresh
}

// Refused are the conditions of an object about which nothing is done, for its spec cannot be read.
func Refused(old []metav1.Condition, generation int64, wrong *v1alpha1.UnreadablePart) []metav1.Condition {
	said := Said{Message: wrong.String() + ": " + Remedy}
	return Kstatus(old, generation, Unreadable, said, Said{}, Said{True: true, Message: said.Message})
}

// Short keeps an event's note below the API's limit of 1 KiB.
func Short(s string) string { return Cut(s, 1000) }

// Long keeps a message far below what an object may hold, and below the limit of a condition's message.
func Long(s string) string { return Cut(s, 16<<10) }

// Cut keeps a text to about so many bytes.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
