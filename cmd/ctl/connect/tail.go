package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"scute.dev/eventlog"
	"scute.dev/internal/sleep"
)

// pollInterval is the interval between checks of a folder for changes.
const pollInterval = time.Second

// Tail calls fn with each commit of the log in order, and then with new commits until ctx ends. It
// calls caughtUp once, after the commits that existed at first. It does not lock a folder, so that
// another process can open the folder in the meantime.
func (f *Flags) Tail(ctx context.Context, w io.Writer, caughtUp func(), fn func(eventlog.Record) error) error {
	if f.Dir != "" {
		return f.tailFolder(ctx, w, caughtUp, fn)
	}
	log, err := f.Log(ctx, w)
	if err != nil {
		return err
	}
	defer log.Close()
	head, err := log.Replay(ctx, 0, fn)
	if err != nil {
		return err
	}
	caughtUp()
	return log.Follow(ctx, head, fn)
}

// tailFolder follows a log in a folder. After each change of the folder it reads a copy, or
// connects to the process that has the folder open.
func (f *Flags) tailFolder(ctx context.Context, w io.Writer, caughtUp func(), fn func(eventlog.Record) error) error {
	if err := f.CheckExists(); err != nil {
		return err
	}
	last, seen, deadline := uint64(0), "", time.Now().Add(f.LogTimeout)
	for {
		written, err := f.fingerprint()
		if err != nil {
			return err
		}
		if written != seen {
			started := seen != ""
			last, err = f.readNew(ctx, w, last, fn)
			retry := time.Now().Before(deadline)
			switch {
			case err == nil:
				seen, deadline = written, time.Now().Add(f.LogTimeout)
				if !started {
					caughtUp()
				}
			case errors.Is(err, eventlog.ErrLocked) && (started || retry): // a daemon has the folder open
			case errors.Is(err, eventlog.ErrUnavailable) && retry: // the process that had it open has just ended
			default:
				return err
			}
		}
		if err := sleep.For(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// readNew calls fn with the commits after a sequence, and returns the last sequence.
func (f *Flags) readNew(ctx context.Context, w io.Writer, after uint64, fn func(eventlog.Record) error) (last uint64, err error) {
	examined := *f
	examined.Examine = true
	log, err := examined.Log(ctx, w)
	if err != nil {
		return after, err
	}
	defer log.Close()
	return log.Replay(ctx, after, fn)
}

// fingerprint returns the names, sizes and times of the folder's files.
func (f *Flags) fingerprint() (all string, err error) {
	err = filepath.WalkDir(filepath.Join(f.Dir, "jetstream"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			all += fmt.Sprintln(path, info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) { // a file was removed during the walk
		err = nil
	}
	return all, err
}
