package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/view"
)

const statusBackups = 20

// Status returns the status of the BackupSchedule.
func Status(s *State, now time.Time) v1alpha1.BackupScheduleStatus {
	out := v1alpha1.BackupScheduleStatus{
		ObservedGeneration: s.Spec.Generation, Phase: phase(s), LastScheduleTime: v1alpha1.StatusTime(s.LastDue), LastSuccessfulTime: v1alpha1.StatusTime(s.LastSuccess),
		NextScheduleTime: v1alpha1.StatusTime(NextDue(s, now).At), LastRequest: s.BegunRequest, Kept: len(s.Kept),
	}
	for _, b := range slices.Backward(s.Kept) {
		if len(out.Backups) < statusBackups {
			out.Backups = append(out.Backups, v1alpha1.BackupRecord{
				ID: b.ID, Path: s.Spec.Destination.Location(b.Path), TakenAt: metav1.Time{Time: b.TakenAt}, Clusters: b.Clusters, Objects: b.Objects, Bytes: b.Bytes,
			})
		}
	}
	out.Message, out.Next = explain(s, now)
	return out
}

// DestinationOf converts the destination of a resource.
func DestinationOf(d v1alpha1.BackupDestination) (to Destination) {
	if v := d.Volume; v != nil {
		to.Folder = v.Folder
	}
	if s := d.S3; s != nil {
		to = Destination{Endpoint: s.Endpoint, Bucket: s.Bucket, Prefix: s.Prefix, Region: s.Region, Secret: s.CredentialsSecretRef.Name, Insecure: s.Insecure}
	}
	return to
}

// Location returns a path at a destination as users write it.
func (d Destination) Location(place string) string {
	if d.Bucket == "" {
		return place
	}
	return "s3://" + d.Bucket + "/" + place
}

func phase(s *State) v1alpha1.BackupSchedulePhase {
	switch {
	case s.Finished():
		return v1alpha1.BackupEnded
	case s.Working:
		return v1alpha1.BackupRunning
	case isRetried(s):
		return v1alpha1.BackupFailing
	case s.Spec.Suspend:
		return v1alpha1.BackupSuspended
	default:
		return v1alpha1.BackupScheduled
	}
}

func explain(s *State, now time.Time) (message, next string) {
	switch phase(s) {
	case v1alpha1.BackupEnded:
		return "the BackupSchedule was deleted; its backups are kept", ""
	case v1alpha1.BackupRunning:
		message = "backing up to " + s.Spec.Destination.Location(s.Running.Path)
		if s.Failures > 0 {
			message += "; the previous attempt failed: " + s.Problem.Text()
		}
	case v1alpha1.BackupFailing:
		return "the last backup failed: " + s.Problem.Text(), cmp.Or(s.Problem.Next, "no action needed: scute retries")
	case v1alpha1.BackupSuspended:
		message = "suspended" + lastBackupText(s)
	default:
		message = "waiting for the next scheduled time" + lastBackupText(s)
	}
	if missed := Missed(s, now); !missed.IsZero() {
		return fmt.Sprintf("no backup started within spec.startingDeadline after %s%s", missed.Format(time.RFC3339), lastBackupText(s)),
			"request a backup with the annotation " + v1alpha1.AnnotationBackUpNow +
				"; raise spec.startingDeadline, or ask the operator of scute why scuted did not run or had no free slot"
	}
	if s.RemovalProblem.Message != "" {
		return message + "; expired backups could not be deleted: " + s.RemovalProblem.Text(), cmp.Or(s.RemovalProblem.Next,
			"no action needed: scute retries")
	}
	return message, ""
}

// Text returns the field and what is wrong.
func (p Problem) Text() string {
	if p.Field == "" {
		return p.Message
	}
	return p.Field + ": " + p.Message
}

func lastBackupText(s *State) string {
	if len(s.Kept) == 0 {
		return "; there is no backup yet"
	}
	b := s.Kept[len(s.Kept)-1]
	if b.Objects == 0 { // found to be complete after its process had ended
		return "; the last backup is " + s.Spec.Destination.Location(b.Path)
	}
	return fmt.Sprintf("; the last backup has %s of %s", view.Count(b.Objects, "object"), view.Count(b.Clusters, "cluster"))
}

// Missed returns the schedule's first time since the last backup for which no backup began within
// the starting deadline, or zero.
func Missed(s *State, now time.Time) time.Time {
	if s.Spec.Suspend || s.Finished() || !s.IsConfigured() || s.Running != nil {
		return time.Time{}
	}
	times, err := parse(s.Spec.Schedule, s.Spec.TimeZone)
	if err != nil {
		return time.Time{}
	}
	// A requested backup replaces a missed one.
	last := slices.MaxFunc([]time.Time{lastDue(s, now), s.LastSuccess}, time.Time.Compare)
	if due := times.Next(last.UTC()); !due.IsZero() && due.Add(time.Duration(s.Spec.StartingDeadline)).Before(now) {
		return due
	}
	return time.Time{}
}
