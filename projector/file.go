package projector

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"scute.dev/internal/atomicfile"
)

// format is the version of the file's layout: one line of JSON (Header), the parts, each as its name and its data with their
// lengths before them, and a SHA-256 over all that.
const format = 2

// Header says what a snapshot is of.
type Header struct {
	Format int `json:"format"`
	// View is the name of the view, Program the one that wrote it, Log the ID of the log.
	View    string `json:"view"`
	Program string `json:"program"`
	Log     string `json:"log"`
	// Seq is the last commit in it, Commit its fingerprint: a log that holds another one there has gone another way.
	Seq    uint64 `json:"sequence"`
	Commit string `json:"commit"`
}

// errUnusable is a snapshot that cannot be used and costs only a replay.
var errUnusable = errors.New("snapshot not usable")

// writeFile replaces the snapshot before. The process that writes it has the log's folder for itself.
func writeFile(path string, h Header, v Snapshotter) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := atomicfile.Clean(path); err != nil {
		return err
	}
	return atomicfile.Write(path, func(w io.Writer) error { return write(w, h, v) })
}

func write(f io.Writer, h Header, v Snapshotter) error {
	sum := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<16)
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if _, err := w.Write(append(head, '\n')); err != nil {
		return err
	}
	if err := v.Snapshot(func(part string, data []byte) error { return writePart(w, part, data) }); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = f.Write(sum.Sum(nil))
	return err
}

func writePart(w io.Writer, name string, data []byte) error {
	for _, b := range [][]byte{[]byte(name), data} {
		if _, err := w.Write(binary.AppendUvarint(nil, uint64(len(b)))); err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// file is an open snapshot that is undamaged.
type file struct {
	Header
	f     *os.File
	parts *bufio.Reader
}

// openFile checks the whole file before anything of it is used.
func openFile(path string) (*file, error) {
	f, err := os.Open(path) //nolint:gosec // the operator's own folder
	if err != nil {
		return nil, err
	}
	s := &file{f: f}
	if err := s.check(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errUnusable, err), f.Close())
	}
	return s, nil
}

func (s *file) check() error {
	stat, err := s.f.Stat()
	if err != nil {
		return err
	}
	sum := sha256.New()
	size := stat.Size() - int64(sum.Size())
	if size < 0 {
		return errors.New("it is damaged")
	}
	if err := s.checkSum(sum, size); err != nil {
		return err
	}
	if _, err := s.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	s.parts = bufio.NewReaderSize(io.LimitReader(s.f, size), 1<<16)
	head, err := s.parts.ReadBytes('\n')
	if err != nil {
		return err
	}
	if err := json.Unmarshal(head, &s.Header); err != nil {
		return err
	}
	if s.Format != format {
		return fmt.Errorf("its format is %d", s.Format)
	}
	return nil
}

func (s *file) checkSum(sum hash.Hash, size int64) error {
	if _, err := io.CopyN(sum, s.f, size); err != nil {
		return err
	}
	want, err := io.ReadAll(s.f)
	if err != nil {
		return err
	}
	if !bytes.Equal(want, sum.Sum(nil)) {
		return errors.New("it is damaged")
	}
	return nil
}

// each hands the parts to fn, in their order.
func (s *file) each(fn func(part string, data []byte) error) error {
	for {
		name, err := s.sized()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := s.sized()
		if err != nil {
			return err
		}
		if err := fn(string(name), data); err != nil {
			return err
		}
	}
}

func (s *file) sized() ([]byte, error) {
	n, err := binary.ReadUvarint(s.parts)
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	_, err = io.ReadFull(s.parts, b)
	return b, err
}
