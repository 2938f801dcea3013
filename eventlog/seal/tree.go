package seal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"
)

const (
	// HashesFile contains the hashes of a Tree, in the order of tlog.StoredHashIndex: about 64 bytes for each commit.
	HashesFile = "hashes"
	// Folder contains the tree of an embedded log, beside the log.
	Folder   = "seal"
	hashSize = tlog.HashSize
)

// Tree is the Merkle tree of a log, stored in a folder. It can be created again from the log. Only
// one goroutine may append. At the same time, other goroutines may read hashes that were synced.
type Tree struct {
	file      *os.File
	out       *bufio.Writer
	edge      edge
	completed []tlog.Hash // reused by Append
}

// OpenTree opens the tree in a folder. It creates the tree if it does not exist. It keeps at most
// the first synced leaves, because a power loss may have damaged the leaves after them.
func OpenTree(dir string, synced uint64) (*Tree, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the hashes of the log: %w", err)
	}
	path := filepath.Join(dir, HashesFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the hashes of the log: %w", err)
	}
	t, err := newTree(f, synced)
	if err == nil {
		err = f.Truncate(offset(t.edge.size))
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the hashes of the log in %s: %w", path, err), f.Close())
	}
	t.out = bufio.NewWriterSize(f, 64<<10)
	return t, nil
}

// ReadTree opens a tree, or a copy of one, for reading. path is the folder of the tree, or its file
// with hashes.
func ReadTree(path string) (*Tree, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, HashesFile)
	}
	f, err := os.Open(path) //nolint:gosec // the caller's file
	if err != nil {
		return nil, fmt.Errorf("opening the hashes of the log: %w", err)
	}
	t, err := newTree(f, 1<<62)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the hashes of the log in %s: %w", path, err), f.Close())
	}
	return t, nil
}

func newTree(f *os.File, limit uint64) (*Tree, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	t := &Tree{file: f}
	size := min(limit, maxLeaves(info.Size()/hashSize))
	var at uint64
	for level := bits.Len64(size) - 1; level >= 0; level-- {
		if size&(1<<level) == 0 {
			continue
		}
		h, err := t.ReadHashes([]int64{tlog.StoredHashIndex(level, int64(at>>level))}) //nolint:gosec // sizes are far below 2^63
		if err != nil {
			return nil, err
		}
		t.edge.roots, at = append(t.edge.roots, h[0]), at+1<<level
	}
	t.edge.size = size
	return t, nil
}

// maxLeaves returns the number of leaves of the largest tree that has at most count hashes.
func maxLeaves(count int64) uint64 {
	n := count / 2 // a tree of n leaves has from n to 2n-1 hashes
	for n > 0 && tlog.StoredHashCount(n) > count {
		n--
	}
	for tlog.StoredHashCount(n+1) <= count {
		n++
	}
	return uint64(n) //nolint:gosec // not negative
}

// offset returns the size of the file for a tree with size leaves.
func offset(size uint64) int64 { return tlog.StoredHashCount(int64(size)) * hashSize } //nolint:gosec // far below 2^63

// Size returns the number of leaves, which equals the sequence of the last commit in the tree.
func (t *Tree) Size() uint64 { return t.edge.size }

// Append appends the hash of the next leaf.
func (t *Tree) Append(leaf tlog.Hash) error {
	t.completed = t.edge.add(leaf, t.completed)
	for i := range t.completed {
		if _, err := t.out.Write(t.completed[i][:]); err != nil {
			return fmt.Errorf("writing the hashes of the log: %w", err)
		}
	}
	return nil
}

// Sync syncs appended hashes to the disk.
func (t *Tree) Sync() error {
	if err := errors.Join(t.out.Flush(), t.file.Sync()); err != nil {
		return fmt.Errorf("writing the hashes of the log: %w", err)
	}
	return nil
}

// Root returns the root of the tree's first size leaves.
func (t *Tree) Root(size uint64) (tlog.Hash, error) {
	switch {
	case size == t.edge.size:
		return t.edge.root(), nil
	case size > t.edge.size:
		return tlog.Hash{}, fmt.Errorf("the hashes cover the commits up to %d, not %d", t.edge.size, size)
	}
	return tlog.TreeHash(int64(size), t) //nolint:gosec // sizes are far below 2^63
}

// Leaf returns the hash of the commit at a sequence.
func (t *Tree) Leaf(seq uint64) (tlog.Hash, error) {
	if seq == 0 || seq > t.edge.size {
		return tlog.Hash{}, fmt.Errorf("the hashes cover the commits 1 to %d, not %d", t.edge.size, seq)
	}
	h, err := t.ReadHashes([]int64{tlog.StoredHashIndex(0, int64(seq-1))}) //nolint:gosec // sequences are far below 2^63
	if err != nil {
		return tlog.Hash{}, err
	}
	return h[0], nil
}

// ReadHashes implements tlog.HashReader.
func (t *Tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if _, err := t.file.ReadAt(out[i][:], index*hashSize); err != nil {
			return nil, fmt.Errorf("reading hash %d of the log: %w", index, err)
		}
	}
	return out, nil
}

// Close closes the file. Hashes that were not synced may be lost.
func (t *Tree) Close() error {
	if err := t.file.Close(); err != nil {
		return fmt.Errorf("closing the hashes of the log: %w", err)
	}
	return nil
}

// CopyTo updates the copy of the hashes in the file at path to the synced size. It only appends to
// an existing copy.
func (t *Tree) CopyTo(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o640) //nolint:gosec // auditors read it
	if err != nil {
		return fmt.Errorf("copying the hashes of the log: %w", err)
	}
	has, err := f.Seek(0, io.SeekEnd)
	if end := offset(t.edge.size); err == nil && has < end {
		has -= has % hashSize
		if _, err = f.Seek(has, io.SeekStart); err == nil {
			_, err = io.Copy(f, io.NewSectionReader(t.file, has, end-has))
		}
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("copying the hashes of the log: %w", err)
	}
	return nil
}
