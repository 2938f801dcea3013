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

// look is how often a folder is looked at whose log nobody has open.
const look = time.Second

// Tail hands every commit of the log to fn, in order, and those that follow until ctx ends. caughtUp is called once, when fn has what
// was there at first. A folder is not kept locked: a process that runs something there is followed meanwhile. fn may be given commits again
// that it had before, when a folder is read again.
func (f *Flags) Tail(ctx context.Context, w io.Writer, caughtUp func(), fn func(eventlog.Record) error) error {
	t := &tailed{Flags: f, w: w, caughtUp: caughtUp, fn: fn}
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

// tailed is a log that is followed.
type tailed struct {
	*Flags
	w        io.Writer
	caughtUp func()
	fn       func(eventlog.Record) error
	last     uint64
}

func (t *tailed) take(r eventlog.Record) error {
	t.last = max(t.last, r.Seq)
	return t.fn(r)
}

// replay hands over what is there.
func (t *tailed) replay(ctx context.Context, log *Log) error {
	if _, err := log.Replay(ctx, t.last, t.take); err != nil {
		return err
	}
	if t.caughtUp != nil {
		t.caughtUp()
		t.caughtUp = nil
	}
	return nil
}

func (t *tailed) follow(ctx context.Context, log *Log) error {
	if err := t.replay(ctx, log); err != nil {
		return err
	}
	return log.Follow(ctx, t.last, t.take)
}

// folder reads a copy of the folder whenever something was written there, and follows who has it open as long as it does.
func (t *tailed) folder(ctx context.Context) error {
	seen, patience := "", time.Now().Add(t.LogTimeout)
	for ctx.Err() == nil {
		written, err := t.written()
		if err != nil {
			return err
		}
		if err := t.joined(ctx); err == nil {
			seen = "" // what was appended last may not have arrived
		} else if written != seen {
			err := t.copied(ctx)
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
		case <-time.After(look):
		}
	}
	return ctx.Err()
}

// copied reads a copy of the folder.
func (t *tailed) copied(ctx context.Context) error {
	examined := *t.Flags
	examined.Examine = true
	log, err := examined.Log(ctx, t.w)
	if err != nil {
		return err
	}
	defer log.Close()
	return t.replay(ctx, log)
}

// joined follows the process that has the folder open, until it ends. It fails when there is none.
func (t *tailed) joined(ctx context.Context) error {
	d, err := t.endpoint()
	if err != nil {
		return err
	}
	u, err := url.Parse(d.URL)
	if err != nil {
		return err
	}
	if err := knock(ctx, u.Host); err != nil {
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
		for knock(following, u.Host) == nil {
			select {
			case <-following.Done():
			case <-time.After(look):
			}
		}
	}()
	err = t.follow(following, log)
	if following.Err() != nil {
		return nil // the process has ended, or ctx has
	}
	return err
}

// knock finds out whether somebody listens.
func knock(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// written tells one content of the folder from another by the files, their sizes and times.
func (t *tailed) written() (string, error) {
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
		return "", fmt.Errorf("%s is not the folder of an event log: give what the daemon has as --log-dir, or what a local run had as --log", t.Dir)
	case errors.Is(err, fs.ErrNotExist): // a file went while we looked
		return all, nil
	}
	return all, err
}
