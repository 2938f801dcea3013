package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
	"scute.dev/internal/atomicfile"
)

// partBytes is the size at which the next part begins.
const partBytes = 64 << 20

// Log contains the methods of a log that a backup needs.
type Log interface {
	ID() string
	Stats(ctx context.Context) (eventlog.Stats, error)
	At(ctx context.Context, seq uint64) (eventlog.Record, error)
	Replay(ctx context.Context, after uint64, fn func(eventlog.Record) error) (uint64, error)
}

// Options configure a backup.
type Options struct {
	// Checkpoint is the newest signed checkpoint of the log; nil if there is none.
	Checkpoint []byte
	Now        time.Time
	// Copied and Verified are called with the progress of copying and of verifying; may be nil.
	Copied   func(seq, head uint64)
	Verified func(seq, head uint64)
}

// Write backs up a log into a folder, which must be new, empty, or contain an earlier backup. It
// copies only commits that the earlier backup lacks. It fails if the earlier backup is of a
// different log or has more commits than the log, or if the written files cannot be verified. In
// these cases the earlier backup is unchanged.
func Write(ctx context.Context, log Log, dir string, o Options) (m Manifest, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("backing up the log to %s: %w", dir, err)
		}
	}()
	folder, err := lockFolder(dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	stats, err := log.Stats(ctx)
	if err != nil {
		return m, err
	}
	m, err = read(dir)
	first := errors.Is(err, ErrNotFound)
	if err != nil && !first {
		return m, err
	}
	if first {
		m = Manifest{Format: format, LogID: log.ID()}
		if err := initFolder(dir, m); err != nil {
			return m, err
		}
	}
	if err := tidy(dir, m); err != nil {
		return m, err
	}
	tree, err := seal.OpenTree(dir, m.Last)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	w := &backup{log: log, dir: dir, tree: tree, options: o, manifest: m}
	if err := w.write(ctx, stats); err != nil {
		return m, err
	}
	return w.manifest, nil
}

type backup struct {
	log      Log
	dir      string
	tree     *seal.Tree
	hasher   seal.Hasher
	options  Options
	manifest Manifest
}

func (b *backup) write(ctx context.Context, stats eventlog.Stats) (err error) {
	if err := b.checkContinues(ctx, stats.Commits); err != nil {
		return err
	}
	m := &b.manifest
	for m.Last < stats.Commits {
		if err := b.writePart(ctx, stats.Commits); err != nil {
			return err
		}
	}
	if err := b.tree.Sync(); err != nil {
		return err
	}
	if m.Root, err = b.tree.Root(m.Last); err != nil {
		return err
	}
	m.CompletedAt, m.MaxBytes = b.options.Now.UTC(), int64(stats.MaxBytes) //nolint:gosec // the server has it as an int64
	if err := verify(ctx, b.dir, *m, b.options.Verified); err != nil {
		return err
	}
	if err := b.writeCheckpoint(); err != nil {
		return err
	}
	return m.write(b.dir)
}

// checkContinues checks that the log contains the commits of the backup.
func (b *backup) checkContinues(ctx context.Context, head uint64) error {
	m := b.manifest
	root, err := b.tree.Root(b.tree.Size())
	switch {
	case m.LogID != b.log.ID():
		return fmt.Errorf("it has a backup of log %s, this is log %s: name another folder", m.LogID, b.log.ID())
	case m.Last == 0:
		return nil
	case err != nil || b.tree.Size() != m.Last || root != m.Root:
		return errors.Join(err, fmt.Errorf("the file %s is damaged: start a backup in another folder, and keep this one", seal.HashesFile))
	case head < m.Last:
		return fmt.Errorf("the log ends at %d, the backup at %d: the log went back; keep this backup, which has the lost commits, and name another folder", head, m.Last)
	}
	r, err := b.log.At(ctx, m.Last)
	if err != nil {
		return err
	}
	leaf, err := b.tree.Leaf(m.Last)
	if err != nil {
		return err
	}
	if b.hasher.Hash(r) != leaf {
		return fmt.Errorf("commit %d of the log differs from that of the backup: the log went back and continued differently; keep this backup, and name another folder", m.Last)
	}
	return nil
}

var errPartFull = errors.New("the part is full")

func (b *backup) writePart(ctx context.Context, head uint64) error {
	m := &b.manifest
	p := Part{File: partName(m.Last + 1), First: m.Last + 1, Last: m.Last}
	err := atomicfile.Write(filepath.Join(b.dir, p.File), func(out io.Writer) error {
		sum := &counter{w: out, hash: sha256.New()}
		w, err := eventlog.NewExportWriter(sum, eventlog.ExportHead{LogID: m.LogID, Last: head})
		if err != nil {
			return err
		}
		_, err = b.log.Replay(ctx, m.Last, func(r eventlog.Record) error {
			if err := errors.Join(w.Write(r), b.tree.Append(b.hasher.Hash(r))); err != nil {
				return err
			}
			p.Last, m.Stored = r.Seq, r.Stored.UTC()
			if b.options.Copied != nil {
				b.options.Copied(r.Seq, head)
			}
			if sum.bytes >= partBytes || r.Seq == head {
				return errPartFull
			}
			return nil
		})
		if errors.Is(err, errPartFull) {
			err = nil
		}
		err = errors.Join(err, w.Close())
		p.Bytes, p.SHA256 = sum.bytes, hex.EncodeToString(sum.hash.Sum(nil))
		return err
	})
	if err != nil {
		return err
	}
	m.Parts, m.Last = append(m.Parts, p), p.Last
	return nil
}

func (b *backup) writeCheckpoint() error {
	if len(b.options.Checkpoint) == 0 {
		return nil
	}
	path := filepath.Join(b.dir, CheckpointsFile)
	there, err := os.ReadFile(path) //nolint:gosec // the caller's folder
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	note := append(bytes.TrimSpace(b.options.Checkpoint), '\n')
	if bytes.Contains(there, note) {
		return nil
	}
	if len(there) > 0 {
		there = append(there, '\n')
	}
	return atomicfile.WriteBytes(path, append(there, note...))
}

type counter struct {
	w     io.Writer
	hash  hash.Hash
	bytes int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.bytes += int64(n)
	c.hash.Write(p[:n])
	return n, err
}
