package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Scan hands every commit that can be read to fn, in order, up to the head of the log at the time of the call. Replay
// stops at the first one that cannot be read; Scan continues after it, so the sequences may have gaps. It is for logs
// opened with Examine: to find out what is lost, and to save the rest. An error of fn ends it and is returned.
func (l *Log) Scan(ctx context.Context, fn func(Record) error) error {
	state, err := l.state(ctx)
	if err != nil {
		return fmt.Errorf("scanning the log: %w", err)
	}
	cursor := max(state.FirstSeq, 1) - 1
	head, err := l.lastReadable(ctx, cursor, state.LastSeq)
	for err == nil && cursor < head {
		err = l.read(ctx, &cursor, head, replayPatience, fn)
		if errors.Is(err, ErrGap) {
			// The server does not deliver the next commit: it is asked for each by its sequence until one can be read.
			err = l.skip(ctx, &cursor, head, fn)
		}
	}
	if err != nil {
		return fmt.Errorf("scanning the log: at %d: %w", cursor, err)
	}
	return nil
}

// lastReadable is the last sequence between two at which a commit can be read.
func (l *Log) lastReadable(ctx context.Context, after, head uint64) (uint64, error) {
	for ; head > after; head-- {
		if _, ok, err := l.get(ctx, getRequest{Seq: head}); ok || err != nil {
			return head, err
		}
	}
	return after, nil
}

// skip hands the next commit that can be read to fn, if there is one.
func (l *Log) skip(ctx context.Context, cursor *uint64, head uint64, fn func(Record) error) error {
	for *cursor < head {
		r, ok, err := l.get(ctx, getRequest{Seq: *cursor + 1})
		if err != nil {
			return err
		}
		*cursor++
		if ok {
			return fn(r)
		}
	}
	return nil
}

// CopyFolder copies what the server has written to the folder of an embedded log, so that the copy can be examined. No process may
// have the log open: it fails with ErrLocked.
func CopyFolder(dir, to string) error {
	lock, err := lockToRead(dir)
	if err != nil {
		return fmt.Errorf("copying the event log: %w", err)
	}
	err = os.CopyFS(filepath.Join(to, serverFolder), os.DirFS(filepath.Join(dir, serverFolder)))
	if err = errors.Join(err, unlock(lock)); err != nil {
		return fmt.Errorf("copying the event log in %s: %w", dir, err)
	}
	return nil
}

// serverFolder is what the server keeps everything in.
const serverFolder = "jetstream"
