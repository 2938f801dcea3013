package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"scute.dev/eventlog"
	"scute.dev/internal/atomicfile"
)

const restoringFolder = "scute.restoring"

// RestoreOptions allow operations that Restore refuses by default.
type RestoreOptions struct {
	// AllowOlder allows a backup that ends before the last commit that the log in the folder had acknowledged.
	AllowOlder bool
	// RenameExistingTo is the name to which an existing log in the folder is renamed. If it is "",
	// Restore refuses to replace an existing log.
	RenameExistingTo string
}

// Restore creates the log in a folder from a backup. The folder may be new, or have lost its log.
// Restore fails with ErrExists of package eventlog if there is a log, and with ErrGap if the
// previous log had acknowledged commits after the end of the backup. The log appears in the folder
// atomically, after it is complete, checked and synced. If Restore is interrupted before that, the
// folder has no log, and the next call starts from the beginning.
func Restore(ctx context.Context, o Options, r eventlog.RestoreSource, allow RestoreOptions) error {
	f, err := acquireFolder(o.Dir)
	if err != nil {
		return fmt.Errorf("restoring the event log: %w", err)
	}
	err = f.restore(ctx, o, r, allow)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("restoring the event log in %s: %w", o.Dir, err)
	}
	return nil
}

func (f *folder) restore(ctx context.Context, o Options, r eventlog.RestoreSource, allow RestoreOptions) error {
	place := filepath.Join(f.dir, serverFolder)
	_, err := os.Stat(place)
	there := err == nil
	if there && allow.RenameExistingTo == "" {
		return fmt.Errorf("%w: move %s away first, or name another folder", eventlog.ErrExists, place)
	} else if !there && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if acked := f.watermark.acknowledged(); acked > r.Last && !allow.AllowOlder {
		return fmt.Errorf("%w: the log that was in this folder had acknowledged commits up to %d, but the backup ends at %d", eventlog.ErrGap, acked, r.Last)
	}
	work := filepath.Join(f.dir, restoringFolder)
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := restoreInto(ctx, o, work, r); err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	// The watermark is never below the last commit that the log in the folder must have. It is
	// raised before the old log is moved, so that no new log can begin in the folder, and lowered
	// afterwards.
	if err := f.watermark.set(max(f.watermark.acknowledged(), r.Last)); err != nil {
		return err
	}
	if there {
		if err := os.Rename(place, filepath.Join(f.dir, allow.RenameExistingTo)); err != nil {
			return err
		}
	}
	if err := f.watermark.set(r.Last); err != nil {
		return err
	}
	for _, name := range []string{movedFile, idFile} {
		if err := os.Remove(filepath.Join(f.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(filepath.Join(work, serverFolder), place); err != nil {
		return err
	}
	return errors.Join(atomicfile.Sync(f.dir), os.RemoveAll(work))
}

// restoreInto restores the log in an unused folder, and syncs all of its files.
func restoreInto(ctx context.Context, o Options, work string, r eventlog.RestoreSource) error {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Dir, o.Listen, o.Token, o.Access, o.unsynced = work, "", "", nil, true
	srv, err := startServer(ctx, o, o.Logger)
	if err != nil {
		return err
	}
	err = eventlog.RestoreHosted(ctx, srv, o.MaxBytes, r)
	srv.Shutdown()
	srv.WaitForShutdown()
	if err != nil {
		return err
	}
	return filepath.WalkDir(work, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return atomicfile.Sync(path)
	})
}
