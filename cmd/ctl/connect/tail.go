package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"path/filepath"
	"time"

	"scute.dev/eventlog"
)

// pollInterval is the interval at which a folder is checked for changes.
const pollInterval = time.Second

// Tail calls fn with each commit of the log in order, and with new commits until ctx ends. It calls caughtUp once, after the commits that existed at
// first. It does not lock a folder, so a process may run there meanwhile. When Tail reads a folder again, fn may receive commits a second time.
func (f *Flags) Tail(ctx context.Context, w io.Writer, caughtUp func(), fn func(eventlog.Record) error) error {
	t := &tailState{Flags: f, w: w, caughtUp: caughtUp, fn: fn}
	if f.Dir != "" {
		return t.folder(ctx)
	}
	log, err := f.Log(ctx, w)
	if err != nil {
		return err
	}
	defer log.Close()
	return t.follow(ctx, log)
}

// tailState is the state of a Tail.
type tailState struct {
	*Flags
	w        io.Writer
	caughtUp func()
	fn       func(eventlog.Record) error
	last     uint64
}

func (t *tailState) apply(r eventlog.Record) error {
	t.last = max(t.last, r.Seq)
	return t.fn(r)
}

// replay calls fn with all existing commits.
func (t *tailState) replay(ctx context.Context, log *Log) error {
	if _, err := log.Replay(ctx, t.last, t.apply); err != nil {
		return err
	}
	if t.caughtUp != nil {
		t.caughtUp()
		t.caughtUp = nil
	}
	return nil
}

func (t *tailState) follow(ctx context.Context, log *Log) error {
	if err := t.replay(ctx, log); err != nil {
		return err
	}
	return log.Follow(ctx, t.last, t.apply)
}

// folder reads a copy of the folder after each change. While a process has the folder open, it follows that process instead.
func (t *tailState) folder(ctx context.Context) error {
	seen, patience := "", time.Now().Add(t.LogTimeout)
	for ctx.Err() == nil {
		written, err := t.fingerprint()
		if err != nil {
			return err
		}
		if err := t.followProcess(ctx); err == nil {
			seen = "" // the last commits may not have arrived
		} else if written != seen {
			err := t.readCopy(ctx)
			switch locked := errors.Is(err, eventlog.ErrLocked); {
			case err == nil:
				seen = written
			case locked && t.caughtUp != nil && time.Now().After(patience):
				return err
			case !locked:
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
	return ctx.Err()
}

// readCopy reads a copy of the folder.
func (t *tailState) readCopy(ctx context.Context) error {
	examined := *t.Flags
	examined.Examine = true
	log, err := examined.Log(ctx, t.w)
	if err != nil {
		return err
	}
	defer log.Close()
	return t.replay(ctx, log)
}

// followProcess follows the process that has the folder open, until the process ends. It returns an error if there is none.
func (t *tailState) followProcess(ctx context.Context) error {
	d, err := t.endpoint()
	if err != nil {
		return err
	}
	u, err := url.Parse(d.URL)
	if err != nil {
		return err
	}
	if err := checkListening(ctx, u.Host); err != nil {
		return err
	}
	opening, cancel := context.WithTimeout(ctx, t.LogTimeout)
	defer cancel()
	log, err := t.join(opening, Logger(io.Discard))
	if err != nil {
		return err
	}
	defer log.Close()
	following, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop()
		for checkListening(following, u.Host) == nil {
			select {
			case <-following.Done():
			case <-time.After(pollInterval):
			}
		}
	}()
	err = t.follow(following, log)
	if following.Err() != nil {
		return nil // the process or ctx has ended
	}
	return err
}

// checkListening connects to an address and reports whether a process listens there.
func checkListening(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// fingerprint returns a fingerprint of the folder's content: the names, sizes and times of its files.
func (t *tailState) fingerprint() (string, error) {
	var all string
	err := filepath.WalkDir(filepath.Join(t.Dir, "jetstream"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all += fmt.Sprintln(path, info.Size(), info.ModTime().UnixNano())
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist) && all == "" && t.last == 0:
		return "", fmt.Errorf("%s is not the folder of an event log: use the folder of the daemon's --log-dir, or of a local run's --log", t.Dir)
	case errors.Is(err, fs.ErrNotExist): // a file was removed during the walk
		return all, nil
	}
	return all, err
}
