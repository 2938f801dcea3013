package schedule

import (
	"fmt"
	"strings"
	"time"

	"scute.dev/view"
)

// Describe returns an event of a BackupSchedule in words.
func Describe(e Event) view.Line {
	switch e := e.(type) {
	case Configured:
		return view.Line{Name: "schedule set", Detail: scheduled(e.Spec), Clusters: e.Spec.Clusters, AllClusters: e.Spec.All}
	case Requested:
		return view.Line{Name: "backup requested", Detail: e.Value}
	case Claimed:
		return view.Line{Detail: "by " + e.Holder}
	case Started:
		return view.Line{Name: "backup started", Detail: view.Join("backup "+e.ID+" at "+e.Path, occasion(e))}
	case Completed:
		detail := "backup " + e.ID + " at " + e.Path
		if e.Objects > 0 {
			detail += fmt.Sprintf(": %s of clusters %s, %d bytes", view.Count(e.Objects, "object"), strings.Join(e.Clusters[:min(len(e.Clusters), view.Named)], ", "), e.Bytes)
		}
		return view.Line{Name: "backup complete", Detail: detail, Clusters: e.Clusters}
	case Failed:
		return view.Line{Name: "backup failed", Detail: view.Join("backup "+e.ID+": "+e.Text(), e.Next)}
	case RemovalStarted:
		return view.Line{Detail: view.Count(len(e.Backups), "backup") + " no longer kept: " + view.First(e.Backups)}
	case Removed:
		return view.Line{Name: "backups removed", Detail: removed(e)}
	case RemovalFailed:
		return view.Line{Detail: view.Join(e.Text(), e.Next)}
	case Ended:
		return view.Line{Name: "schedule ended", Detail: e.Reason}
	default:
		return view.Line{}
	}
}

func scheduled(s Spec) string {
	what := "clusters " + strings.Join(s.Clusters[:min(len(s.Clusters), view.Named)], ", ")
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

func occasion(e Started) string {
	switch {
	case e.Request != "":
		return "requested: " + e.Request
	case e.Skipped > 0:
		return fmt.Sprintf("due at %s; %s missed", e.Due.UTC().Format(time.RFC3339), view.Count(e.Skipped, "earlier backup was", "earlier backups were"))
	default:
		return "due at " + e.Due.UTC().Format(time.RFC3339)
	}
}

func removed(e Removed) string {
	var parts []string
	for _, b := range e.Backups {
		parts = append(parts, b.Path)
	}
	for _, place := range e.Incomplete {
		parts = append(parts, place+" (incomplete)")
	}
	for _, place := range e.Foreign {
		parts = append(parts, place+" (not deleted: another backup or other files are there)")
	}
	return view.First(parts)
}
