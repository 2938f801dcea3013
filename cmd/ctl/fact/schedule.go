package fact

import (
	"fmt"
	"strings"
	"time"

	"scute.dev/internal/plural"
	"scute.dev/mover/schedule"
)

// schedules describes an event of a BackupSchedule. An empty What means the name in the event's type.
func schedules(e schedule.Event) Fact {
	switch e := e.(type) {
	case schedule.Configured:
		return Fact{What: "schedule set", Detail: scheduled(e.Spec)}
	case schedule.Asked:
		return Fact{What: "backup requested", Detail: e.Value}
	case schedule.Claimed:
		return Fact{Detail: "by " + e.Holder}
	case schedule.Started:
		return Fact{What: "backup started", Detail: join("backup "+e.ID+" at "+e.Place, occasion(e))}
	case schedule.Completed:
		detail := "backup " + e.ID + " at " + e.Place
		if e.Objects > 0 {
			detail += fmt.Sprintf(": %s of clusters %s, %d bytes", plural.Of(e.Objects, "object"), strings.Join(e.Clusters[:min(len(e.Clusters), named)], ", "), e.Bytes)
		}
		return Fact{What: "backup complete", Detail: detail}
	case schedule.Failed:
		return Fact{What: "backup failed", Detail: join("backup "+e.ID+": "+e.Text(), e.Next)}
	case schedule.RemovalStarted:
		return Fact{Detail: plural.Of(len(e.Backups), "backup") + " no longer kept: " + ids(e.Backups)}
	case schedule.Removed:
		return Fact{What: "backups removed", Detail: removed(e)}
	case schedule.RemovalFailed:
		return Fact{Detail: join(e.Text(), e.Next)}
	case schedule.Ended:
		return Fact{What: "schedule ended", Detail: e.Reason}
	default:
		return Fact{}
	}
}

func scheduled(s schedule.Spec) string {
	what := "clusters " + strings.Join(s.Clusters[:min(len(s.Clusters), named)], ", ")
	switch {
	case s.All:
		what = "all clusters"
	case s.BySelector:
		what = "clusters with labels " + s.Selector
	}
	where := "the volume"
	if s.Destination.Bucket != "" {
		where = "s3://" + s.Destination.Bucket + " at " + s.Destination.Endpoint
	}
	text := fmt.Sprintf("%s of namespace %s at %q in %s, to %s", what, s.Namespace, s.Schedule, s.TimeZone, where)
	if s.Suspend {
		text += ", suspended"
	}
	return text
}

func occasion(e schedule.Started) string {
	switch {
	case e.Request != "":
		return "requested: " + e.Request
	case e.Skipped > 0:
		return fmt.Sprintf("due at %s; %s missed", e.Due.UTC().Format(time.RFC3339), plural.Of(e.Skipped, "earlier one was", "earlier ones were"))
	default:
		return "due at " + e.Due.UTC().Format(time.RFC3339)
	}
}

// ids returns the first IDs and the number of the others.
func ids(list []string) string {
	text := strings.Join(list[:min(len(list), named)], ", ")
	if more := len(list) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func removed(e schedule.Removed) string {
	var parts []string
	for _, b := range e.Backups[:min(len(e.Backups), named)] {
		parts = append(parts, b.Place)
	}
	for _, place := range e.Incomplete[:min(len(e.Incomplete), named)] {
		parts = append(parts, place+" (incomplete)")
	}
	for _, place := range e.Foreign[:min(len(e.Foreign), named)] {
		parts = append(parts, place+" (left alone: another backup, or something else, is there)")
	}
	return strings.Join(parts, ", ")
}
