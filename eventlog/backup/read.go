package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"scute.dev/eventlog"
)

// Each calls fn with the commits of a backup, in order. It calls bad with an error for each line
// that cannot be read and for each part that was changed. If bad returns an error, Each stops;
// otherwise it continues.
func Each(ctx context.Context, dir string, m Manifest, fn func(eventlog.Record) error, bad func(error) error) error {
	for _, p := range m.Parts {
		if err := p.each(ctx, dir, m.LogID, fn, bad); err != nil {
			return err
		}
	}
	return nil
}

func (p Part) each(ctx context.Context, dir, logID string, fn func(eventlog.Record) error, bad func(error) error) error {
	f, err := os.Open(filepath.Join(dir, p.File))
	if err != nil {
		return bad(fmt.Errorf("%s: %w", p.File, err))
	}
	defer f.Close()
	sum := &counter{w: io.Discard, hash: sha256.New()}
	in := io.TeeReader(f, sum)
	r, err := eventlog.NewExportReader(in)
	if err != nil {
		return bad(fmt.Errorf("%s: %w", p.File, err))
	}
	if r.Head.LogID != logID {
		if err := bad(fmt.Errorf("%s: it is of log %q, must be of log %s", p.File, r.Head.LogID, logID)); err != nil {
			return err
		}
	}
	var last uint64
	for ctx.Err() == nil {
		commit, err := r.Next()
		var unreadable *eventlog.LineError
		switch {
		case errors.Is(err, io.EOF):
			return p.verifySum(sum, last, bad)
		case errors.As(err, &unreadable):
			if err := bad(fmt.Errorf("%s: %w", p.location(uint64(unreadable.Line)), unreadable.Err)); err != nil { //nolint:gosec // not negative
				return err
			}
			continue
		case err != nil:
			return bad(fmt.Errorf("%s: %w", p.File, err))
		}
		last = commit.Seq
		if err := fn(commit); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (p Part) verifySum(s *counter, last uint64, bad func(error) error) error {
	switch {
	case s.bytes < p.Bytes:
		return bad(fmt.Errorf("%s: it has %d bytes, must have %d: it was cut off after commit %d of %d", p.File, s.bytes, p.Bytes, last, p.Last))
	case hex.EncodeToString(s.hash.Sum(nil)) != p.SHA256:
		return bad(fmt.Errorf("%s: its SHA-256 is not the one in %s", p.File, ManifestFile))
	}
	return nil
}

// location returns the file, the line and the commit of a line. The first line is the head, and
// every other line is one commit.
func (p Part) location(line uint64) string {
	return fmt.Sprintf("%s, line %d (commit %d)", p.File, line, p.First+line-2)
}

// location returns the file and the line of a commit.
func (m Manifest) location(seq uint64) string {
	for _, p := range m.Parts {
		if p.First <= seq && seq <= p.Last {
			return p.location(seq - p.First + 2)
		}
	}
	return fmt.Sprintf("commit %d", seq)
}
