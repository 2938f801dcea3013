package controller

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"scute.dev/api/v1alpha1"
	"scute.dev/backup/schedule"
	"scute.dev/controllers/resource"
)

// Defaults for resources that were written without the schema's defaults.
const (
	defaultZone             = "Etc/UTC"
	defaultStartingDeadline = time.Hour
	defaultTimeout          = 30 * time.Minute
)

// Spec converts the spec of the resource. It fails if the selector cannot be read.
func Spec(b *v1alpha1.BackupSchedule) (s schedule.Spec, err error) {
	s = schedule.Spec{
		Namespace: b.Namespace, Name: b.Name, UID: string(b.UID), Generation: b.Generation, Schedule: b.Spec.Schedule, TimeZone: zone(b), Suspend: b.Spec.Suspend,
		StartingDeadline: resource.Duration(b.Spec.StartingDeadline, defaultStartingDeadline), Timeout: resource.Duration(b.Spec.Timeout, defaultTimeout),
		Clusters: b.Spec.Clusters.Names, All: b.Spec.Clusters.All, Recipients: b.Spec.Encryption.Recipients, KeepFor: resource.Duration(b.Spec.Retention.KeepFor, 0),
		Destination: schedule.DestinationOf(b.Spec.Destination),
	}
	if n := b.Spec.Retention.KeepLast; n != nil {
		s.KeepLast = int(*n)
	}
	s.Selector, s.BySelector, err = resource.Selector(b.Spec.Clusters.Selector)
	return s, err
}

func zone(b *v1alpha1.BackupSchedule) string { return cmp.Or(b.Spec.TimeZone, defaultZone) }

// invalidPart returns the first part of the spec that cannot be read, or is invalid although the
// schema accepts it; nil if there is none.
func invalidPart(b *v1alpha1.BackupSchedule) *v1alpha1.UnreadablePart {
	if b.Unreadable.Spec != nil {
		return b.Unreadable.Spec
	}
	if at, err := schedule.Validate(b.Spec.Schedule, zone(b)); err != nil {
		return &v1alpha1.UnreadablePart{Field: at, Problem: err.Error()}
	}
	if _, at, err := schedule.ParseRecipients(b.Spec.Encryption.Recipients); err != nil {
		return &v1alpha1.UnreadablePart{Field: at, Problem: err.Error() + ": `age-keygen` creates a key and prints its public key"}
	}
	return resource.InvalidSelector(b.Spec.Clusters.Selector, field.NewPath("spec", "clusters", "selector"))
}

// kstatus returns the conditions of a BackupSchedule: Ready if the last backup succeeded,
// Reconciling while a backup is made, and Stalled while backups fail or cannot start for a cause
// that a person must fix.
func kstatus(old []metav1.Condition, s v1alpha1.BackupScheduleStatus, reason string, generation int64) []metav1.Condition {
	failing := s.Phase == v1alpha1.BackupFailing || s.Phase == v1alpha1.BackupEnded || reason == missedReason
	message := s.Message
	if s.Next != "" {
		message += ". " + s.Next
	}
	running := s.Phase == v1alpha1.BackupRunning
	ready := resource.Value{True: !failing, Message: message}
	if running { // keep Ready: the backup may fail
		was := meta.FindStatusCondition(old, v1alpha1.ConditionReady)
		ready.True = was == nil || was.Status == metav1.ConditionTrue
	}
	return resource.Kstatus(old, generation, reason, ready, resource.Value{True: running, Message: s.Message}, resource.Value{True: failing, Message: message})
}
