package projector

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"scute.dev/eventlog"
)

// snapshotState is touched by Run's goroutine only.
type snapshotState struct {
	seq  uint64        // the newest snapshot's position
	at   time.Time     // when it was taken
	took time.Duration // how long that took
}

// snapshotShare bounds the time that snapshots may take: after one that took t, the next waits for 20 t.
const snapshotShare = 20

func (p *Projector[V]) snapshotDue() bool {
	return p.last.Seq-p.snapshot.seq >= p.opts.Every && time.Since(p.snapshot.at) >= snapshotShare*p.snapshot.took
}

// snapshotWorthwhile says whether to take one at the end: not for a handful of commits.
func (p *Projector[V]) snapshotWorthwhile() bool {
	fresh := p.last.Seq - p.snapshot.seq
	return fresh > 0 && fresh >= p.opts.Every/10
}

// save takes a snapshot. If it fails, the only consequence is a slower start.
func (p *Projector[V]) save() {
	v, ok := any(p.view).(Snapshotter)
	if !ok || p.opts.Snapshot == "" || len(p.aside) > 0 || p.opts.Hold != nil && p.opts.Hold() {
		// With an aggregate set aside the view has a hole, which a program that knows more could fill by a replay.
		return
	}
	start := time.Now()
	err := writeFile(p.opts.Snapshot, Header{
		Format: format, View: p.opts.Name, Program: p.opts.Program, Log: p.log.ID(), Seq: p.last.Seq, Commit: p.last.Fingerprint(),
	}, v)
	p.snapshot = snapshotState{seq: p.last.Seq, at: time.Now(), took: time.Since(start)}
	if err != nil {
		p.logger.Warn("snapshot not written; the next start replays more", "file", p.opts.Snapshot, "error", err)
	}
}

// restore puts the view where the snapshot left it. A snapshot that is missing, damaged, of another program, of another log or
// ahead of the log is left out: it is a cache, and whether the log is the right one is not judged by it.
func (p *Projector[V]) restore(ctx context.Context, head uint64) error {
	v, ok := any(p.view).(Snapshotter)
	if !ok || p.opts.Snapshot == "" {
		return nil
	}
	s, err := openFile(p.opts.Snapshot)
	var last eventlog.Record
	if err == nil {
		defer s.f.Close()
		last, err = s.suits(ctx, p.log, p.opts, head)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, errUnusable):
		p.logger.Warn("replaying from the beginning of the log", "file", p.opts.Snapshot, "error", err)
		return nil
	case err != nil:
		return fmt.Errorf("restoring from %s: %w", p.opts.Snapshot, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := s.each(v.Restore); err != nil {
		// This program wrote it and cannot read it. The view is half filled, so the next start replays.
		return errors.Join(fmt.Errorf("restoring from %s: %w", p.opts.Snapshot, err), os.Remove(p.opts.Snapshot))
	}
	p.last, p.snapshot.seq = last, last.Seq
	p.logger.Info("view restored from a snapshot", "sequence", last.Seq, "head", head)
	return nil
}

// suits says whether a snapshot is one of this view, by this program, of this log, and gives its last commit.
func (s *file) suits(ctx context.Context, log Log, o Options, head uint64) (last eventlog.Record, err error) {
	switch {
	case s.View != o.Name || s.Program != o.Program:
		return last, fmt.Errorf("%w: it is of view %q, written by program %q", errUnusable, s.View, s.Program)
	case s.Log != log.ID():
		return last, fmt.Errorf("%w: it is of log %s", errUnusable, s.Log)
	case s.Seq > head:
		return last, fmt.Errorf("%w: it was taken at %d, but the log ends at %d", errUnusable, s.Seq, head)
	case log.Floor() != nil && s.Seq < log.Floor().Seq:
		return last, fmt.Errorf("%w: it was taken at %d, in an epoch that was dropped", errUnusable, s.Seq)
	}
	if last, err = log.At(ctx, s.Seq); err != nil {
		return last, err
	}
	if s.Commit != last.Fingerprint() {
		return last, fmt.Errorf("%w: commit %d is another one in this log", errUnusable, s.Seq)
	}
	return last, nil
}
