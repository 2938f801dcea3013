package projection

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"scute.dev/eventlog"
)

// Name is what the daemon calls its view.
const Name = "daemon"

// Folder is where the snapshots of an embedded log are, in the log's own folder.
func Folder(logDir string) string { return filepath.Join(logDir, "snapshots") }

// File is the snapshot in a folder of snapshots.
func File(folder string) string { return filepath.Join(folder, Name) }

// usagePart begins the name of a part about what a namespace appended. No kind of aggregate is called so.
const usagePart = "usage"

// Snapshot implements projector.Snapshotter.
func (v *View) Snapshot(put func(part string, data []byte) error) error {
	for _, part := range []func(func(string, []byte) error) error{v.Trust.Snapshot, v.Moves.Snapshot, v.Remediations.Snapshot, v.Pauses.Snapshot, v.Schedules.Snapshot, v.Runs.Snapshot} {
		if err := part(put); err != nil {
			return err
		}
	}
	return v.Usage.Snapshot(func(namespace string, data []byte) error { return put(usagePart+"/"+namespace, data) })
}

// Kinds are those of the aggregates that the view forgets when they have ended.
func Kinds() []eventlog.Kind {
	return []eventlog.Kind{eventlog.KindMove, eventlog.KindRun, eventlog.KindRemediation, eventlog.KindPause, eventlog.KindBackup}
}

// Aggregates hands over those of these kinds that the view has not forgotten.
func (v *View) Aggregates(fn func(eventlog.Aggregate)) error {
	kinds := Kinds()
	return v.Snapshot(func(part string, _ []byte) error {
		if kind, id, _ := strings.Cut(part, "/"); slices.Contains(kinds, eventlog.Kind(kind)) {
			fn(eventlog.Aggregate{Kind: eventlog.Kind(kind), ID: id})
		}
		return nil
	})
}

// Restore implements projector.Snapshotter.
func (v *View) Restore(part string, data []byte) error {
	kind, id, _ := strings.Cut(part, "/")
	switch eventlog.Kind(kind) {
	case eventlog.KindDaemon:
		return v.Trust.Restore(part, data)
	case eventlog.KindMove:
		return v.Moves.Restore(part, data)
	case eventlog.KindRemediation:
		return v.Remediations.Restore(part, data)
	case eventlog.KindPause:
		return v.Pauses.Restore(part, data)
	case eventlog.KindBackup:
		return v.Schedules.Restore(part, data)
	case eventlog.KindRun:
		return v.Runs.Restore(part, data)
	case usagePart:
		return v.Usage.Restore(id, data)
	default:
		return fmt.Errorf("part %q of the snapshot belongs to no view", part)
	}
}
