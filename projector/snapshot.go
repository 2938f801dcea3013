package projector

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"scute.dev/eventlog"
)

// snapshotFormat is the version of the file's layout: one line of JSON (snapshotHeader), then the view's bytes.
const snapshotFormat = 1

type snapshotHeader struct {
	Format  int    `json:"format"`
	View    string `json:"view"`
	Version int    `json:"version"`
	Seq     uint64 `json:"sequence"`
	// Commit is the fingerprint of the commit at Seq: the snapshot belongs to the log that holds this commit there.
	Commit string `json:"commit"`
	// Hash is SHA-256 over the header without it and the view's bytes.
	Hash string `json:"sha256"`
}

// Hash is the view's position and the hash that a snapshot of it would have. Replaying the log from zero up to the same
// position gives the same hash.
func (p *Projector[V]) Hash() (seq uint64, hash string, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	v, ok := any(p.view).(Snapshotter)
	if !ok {
		return 0, "", fmt.Errorf("view %q has no snapshots, so it has no hash", p.opts.Name)
	}
	h, _, err := p.header(v)
	return h.Seq, h.Hash, err
}

func (p *Projector[V]) header(v Snapshotter) (snapshotHeader, []byte, error) {
	data, err := v.Snapshot()
	if err != nil {
		return snapshotHeader{}, nil, fmt.Errorf("taking a snapshot of view %q: %w", p.opts.Name, err)
	}
	h := snapshotHeader{Format: snapshotFormat, View: p.opts.Name, Version: p.opts.Version, Seq: p.last.Seq, Commit: fingerprint(p.last)}
	h.Hash, err = h.sum(data)
	return h, data, err
}

func (h snapshotHeader) sum(data []byte) (string, error) {
	h.Hash = ""
	head, err := json.Marshal(h)
	if err != nil {
		return "", err
	}
	s := sha256.New()
	s.Write(head)
	s.Write(data)
	return hex.EncodeToString(s.Sum(nil)), nil
}

// fingerprint tells a commit from every other one, also from one of the same name in another log.
func fingerprint(r eventlog.Record) string {
	s := sha256.New()
	fmt.Fprintf(s, "%d %d %s %s\n", r.Seq, r.Stored.UnixNano(), r.Subject(), r.CommitID)
	s.Write(r.Data())
	return hex.EncodeToString(s.Sum(nil))
}

// write puts a snapshot in place of the one before, atomically: a crash leaves the old one or the new one.
func (p *Projector[V]) write(v Snapshotter) error {
	h, data, err := p.header(v)
	if err != nil {
		return err
	}
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.opts.Snapshot), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(p.opts.Snapshot+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(append(head, '\n'), data...))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), p.opts.Snapshot)
}

// restore puts the view where the snapshot left it. A snapshot that is missing, damaged, of another version or of
// another log is left out; one that is ahead of the log is an alarm, because the log has lost what it held.
func (p *Projector[V]) restore(ctx context.Context, head uint64) error {
	view, last, err := p.load(ctx, head)
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
	p.view, p.last = view, last
	p.snapshot.seq = last.Seq
	return nil
}

func (p *Projector[V]) load(ctx context.Context, head uint64) (view V, last eventlog.Record, err error) {
	view = p.newView()
	v, ok := any(view).(Snapshotter)
	if !ok || p.opts.Snapshot == "" {
		return view, last, fs.ErrNotExist
	}
	h, data, err := read(p.opts.Snapshot)
	if err != nil {
		return view, last, err
	}
	if h.View != p.opts.Name || h.Version != p.opts.Version {
		return view, last, fmt.Errorf("%w: it is of view %q version %d", errUnusable, h.View, h.Version)
	}
	if h.Seq > head {
		return view, last, fmt.Errorf("%w: the snapshot was taken at %d, but the log ends at %d; restore the log, or delete the snapshot if the log was replaced on purpose",
			eventlog.ErrGap, h.Seq, head)
	}
	if last, err = p.log.At(ctx, h.Seq); err != nil {
		return view, last, err
	}
	if h.Commit != fingerprint(last) {
		return view, last, fmt.Errorf("%w: commit %d is another one in this log", errUnusable, h.Seq)
	}
	if err := v.Restore(data); err != nil {
		return view, last, fmt.Errorf("%w: %w", errUnusable, err)
	}
	return view, last, nil
}

// read reads a snapshot file and checks that it is undamaged.
func read(path string) (snapshotHeader, []byte, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return snapshotHeader{}, nil, err
	}
	head, data, _ := bytes.Cut(file, []byte("\n"))
	var h snapshotHeader
	if err := json.Unmarshal(head, &h); err != nil {
		return h, nil, fmt.Errorf("%w: %w", errUnusable, err)
	}
	if h.Format != snapshotFormat {
		return h, nil, fmt.Errorf("%w: its format is %d", errUnusable, h.Format)
	}
	sum, err := h.sum(data)
	if err != nil || sum != h.Hash {
		return h, nil, fmt.Errorf("%w: it is damaged", errUnusable)
	}
	return h, data, nil
}
