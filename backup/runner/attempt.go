package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/util/uuid"

	"scute.dev/backup/schedule"
	"scute.dev/backup/store"
	"scute.dev/eventlog"
	"scute.dev/mover"
	"scute.dev/mover/archive"
	"scute.dev/mover/transfer"
)

// begin starts a backup. It records the path of the backup before it writes anything there.
func (d *drive) begin(ctx, bounded context.Context, step schedule.Step) error {
	id := string(uuid.NewUUID())
	spec := d.State.Spec
	err := d.Append(ctx, schedule.Started{ID: id, Path: schedule.BackupPath(&spec, id, d.Time()), Due: step.Due, Skipped: step.Skipped, Request: step.Request})
	if errors.Is(err, eventlog.ErrConflict) {
		return d.refresh(ctx) // the spec may have changed: the caller decides again
	}
	if err != nil {
		return err
	}
	backup, written, err := d.attempt(bounded, &spec, id, d.State.Running.Path)
	switch {
	case ctx.Err() != nil:
		return ctx.Err() // this process is stopping; the next one checks the path
	case err != nil:
		return d.record(ctx, schedule.Failed{ID: id, Problem: d.fail("a backup failed", wrapTimeout(bounded, err)), Unwritten: !written})
	}
	return d.record(ctx, schedule.Completed{Backup: backup})
}

func (d *drive) resume(ctx, bounded context.Context) error {
	running := *d.State.Running
	spec := d.State.Spec
	lost := schedule.Problem{Reason: "ProcessEnded", Message: "the process that was making the backup has ended"}
	to, err := d.runner.open(bounded, &spec)
	if err != nil {
		return d.record(ctx, schedule.Failed{ID: running.ID, Problem: d.fail("a backup cannot be checked", err)})
	}
	defer to.Close()
	head, err := onVolume(bounded, d.runner, &spec, func() (archive.Head, error) { return store.CompleteHead(bounded, to, running.Path) })
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return d.record(ctx, schedule.Failed{ID: running.ID, Problem: d.fail("a backup cannot be checked", wrapTimeout(bounded, err))})
	case head.ID != running.ID:
		return d.record(ctx, schedule.Failed{ID: running.ID, Problem: lost})
	}
	return d.record(ctx, schedule.Completed{Backup: schedule.Backup{ID: head.ID, Path: running.Path, TakenAt: head.TakenAt}})
}

// attempt writes a backup of the clusters to a local folder, and copies the folder to the backup's
// path, place. written reports whether the path may contain files.
func (d *drive) attempt(ctx context.Context, spec *schedule.Spec, id, place string) (backup schedule.Backup, written bool, err error) {
	recipients, at, err := schedule.ParseRecipients(spec.Recipients)
	if err != nil {
		return backup, false, &problemError{schedule.Problem{
			Reason: "InvalidRecipient", Field: at, Message: err.Error() + " (age1...)", Next: "create a key with `age-keygen`, which prints the public key",
		}}
	}
	to, err := d.runner.open(ctx, spec)
	if err != nil {
		return backup, false, err
	}
	defer to.Close()
	selection, err := d.selection(ctx, spec)
	if err != nil {
		return backup, false, err
	}
	dir := filepath.Join(d.runner.Dir, id)
	defer os.RemoveAll(dir)
	writer, err := archive.Create(dir, recipients)
	if err != nil {
		return backup, false, fmt.Errorf("creating a folder for the backup: %w", err)
	}
	writer.MaxBytes = d.runner.MaxBytes
	reading := &transfer.Backup{Source: d.runner.Cluster, Selection: selection, Writer: writer, Shares: d.runner.Shares}
	index, warnings, err := reading.Run(ctx)
	if err != nil {
		return backup, false, err
	}
	index.ID, index.TakenAt, index.Recipients, index.Program = id, d.Time(), spec.Recipients, d.runner.Program
	if err := writer.Finish(index); err != nil {
		return backup, false, err
	}
	bytes, err := onVolume(ctx, d.runner, spec, func() (int64, error) { return store.Upload(ctx, to, place, dir) })
	if err != nil {
		return backup, true, err
	}
	return backupOf(index, place, bytes, len(warnings)), true, nil
}

func backupOf(index *archive.Index, place string, bytes int64, warnings int) schedule.Backup {
	return schedule.Backup{
		ID: index.ID, Path: place, TakenAt: index.TakenAt, Clusters: index.Clusters, Objects: len(index.Objects), Bytes: bytes,
		Changed: len(index.Changed), Warnings: warnings,
	}
}

func (d *drive) selection(ctx context.Context, spec *schedule.Spec) (mover.Selection, error) {
	s := mover.Selection{Namespace: spec.Namespace, Clusters: spec.Clusters, All: spec.All}
	if !spec.BySelector {
		return s, nil
	}
	names, err := d.runner.Select(ctx, spec.Namespace, spec.Selector)
	if err != nil {
		return s, err
	}
	if len(names) == 0 {
		return s, &problemError{schedule.Problem{
			Reason: "NothingSelected", Field: "spec.clusters.selector", Message: "it selects no Cluster in the namespace", Next: "label the Clusters, or " +
				"correct the selector",
		}}
	}
	slices.Sort(names)
	s.Clusters = names
	return s, nil
}
