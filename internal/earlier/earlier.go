package earlier

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// Extract copies the log into a temporary folder of the test, and the files that belong to it into another one: the public key, a checkpoint of an
// auditor, and the output of the earlier version. root is the path of the repository's root.
func Extract(t testing.TB, root string) (log, kept string) {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Open(filepath.Join(root, "internal", "earlier", "testdata", "log.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := extract(file, dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "log"), filepath.Join(dir, "kept")
}

// Open opens a temporary copy of the log.
func Open(t testing.TB, root string) *eventlog.Log {
	t.Helper()
	dir, _ := Extract(t, root)
	return logtest.OpenIn(t, dir)
}

// State is the earlier version's output of `log replay --aggregate ... -o json` for one aggregate.
type State map[string]any

// States returns the states of all aggregates from the folder kept.
func States(t testing.TB, kept string) (list []State) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(kept, "states.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for lines := json.NewDecoder(bytes.NewReader(text)); ; {
		var s State
		switch err := lines.Decode(&s); {
		case errors.Is(err, io.EOF):
			return list
		case err != nil:
			t.Fatal(err)
		}
		list = append(list, s)
	}
}

func extract(file io.Reader, dir string) error {
	plain, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case header.Typeflag == tar.TypeDir:
			err = root.MkdirAll(filepath.Clean(header.Name), 0o700)
		default:
			var data []byte
			if data, err = io.ReadAll(files); err == nil {
				err = root.WriteFile(header.Name, data, 0o600)
			}
		}
		if err != nil {
			return err
		}
	}
}
