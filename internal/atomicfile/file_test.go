package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestWriteReplacesAFileWhole checks that a file is replaced, with its mode, and that nothing else remains.
func TestWriteReplacesAFileWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("a longer text than the next"), 0o644); err != nil { //nolint:gosec // Write narrows it
		t.Fatal(err)
	}
	if err := WriteBytes(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "new")
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, error %v, want 0600", info.Mode(), err)
	}
}

// TestWriteThatFails checks that a failed write keeps the earlier file, and that nothing else remains.
func TestWriteThatFails(t *testing.T) {
	path, full := filepath.Join(t.TempDir(), "file"), errors.New("the disk is full")
	if err := WriteBytes(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	err := Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "half of the n")
		return errors.Join(err, full)
	})
	if !errors.Is(err, full) {
		t.Errorf("Write = %v, want %v", err, full)
	}
	expect(t, path, "old")
	folder := filepath.Join(filepath.Dir(path), "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteBytes(folder, nil); err == nil {
		t.Error("a folder was replaced by a file")
	}
	expect(t, path, "old", "folder")
	if err := WriteBytes(filepath.Join(folder, "missing", "file"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("WriteBytes to a missing folder = %v, want ErrNotExist", err)
	}
}

// TestClean checks that Clean removes only what a crashed write of the same file left.
func TestClean(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, name := range []string{path, path + ".tmp", path + ".tmp123", path + "2.tmp1"} {
		if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Clean(path); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "old", "file2.tmp1")
}

// expect compares the content of a file, and the names of other files in its folder.
func expect(t *testing.T, path, want string, beside ...string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || string(data) != want {
		t.Errorf("content %q, error %v, want %q", data, err, want)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != filepath.Base(path) {
			names = append(names, e.Name())
		}
	}
	if !slices.Equal(names, beside) {
		t.Errorf("other files %v, want %v", names, beside)
	}
}
