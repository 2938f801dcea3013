package eventlog_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

const planted = "planted-where-it-can-be-found"

func aKey(n byte) []byte { return bytes.Repeat([]byte{n}, 32) }

// filled makes a log with commits that have a text in them.
func filled(t *testing.T, dir string, key []byte) {
	t.Helper()
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for i := range 40 {
		c := commit(moveOf("a"), fmt.Sprint(i), last, 1)
		c.Events[0].Data = []byte(`{"text":"` + planted + `"}`)
		last = mustAppend(t, log, c)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// content is all files of a log with their hashes, but the lock; has says whether one of them has the text.
func content(t *testing.T, dir string) (files map[string][32]byte, has bool) {
	t.Helper()
	files = map[string][32]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "scute.lock" {
			return err
		}
		data, err := os.ReadFile(path)
		files[path], has = sha256.Sum256(data), has || bytes.Contains(data, []byte(planted))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, has
}

// TestEncryption: the files of a log with a key tell nothing. A key that is not its own, or none, is refused and changes nothing.
func TestEncryption(t *testing.T) {
	plain, secret := t.TempDir(), t.TempDir()
	filled(t, plain, nil)
	filled(t, secret, aKey(1))
	if _, has := content(t, plain); !has {
		t.Error("the text is not found in the files of a log without a key")
	}
	before, has := content(t, secret)
	if has {
		t.Error("the text is found in the files of a log with a key")
	}
	unlike := func(what, dir string, key []byte, says string) {
		t.Helper()
		before, _ := content(t, dir)
		for _, examine := range []bool{false, true} {
			_, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, Key: key, Examine: examine})
			if err == nil || !errors.Is(err, eventlog.ErrKey) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", what, err)
			}
		}
		after, _ := content(t, dir)
		if len(before) != len(after) {
			t.Errorf("%s: %d files became %d", what, len(before), len(after))
		}
		for path, is := range before {
			if after[path] != is {
				t.Errorf("%s: %s was changed", what, path)
			}
		}
	}
	unlike("another key", secret, aKey(2), "not the one that the log is encrypted with")
	unlike("no key", secret, nil, "no key is given")
	unlike("a key for a log without one", plain, aKey(1), "restore the backup with the key")

	log, err := embedded.Open(t.Context(), embedded.Options{Dir: secret, Key: aKey(1)})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	if _, err := log.Replay(t.Context(), 0, func(r eventlog.Record) error {
		if !bytes.Contains(r.Data(), []byte(planted)) {
			t.Errorf("commit %d: %s", r.Seq, r.Data())
		}
		seen++
		return nil
	}); err != nil || seen != 40 {
		t.Errorf("%d commits, %v", seen, err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}

	// A part with another key: the server would remove its messages.
	for path := range before {
		if filepath.Ext(path) == ".key" && filepath.Base(path) != "meta.key" {
			if err := os.WriteFile(path, bytes.Repeat([]byte{7}, 64), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	unlike("a part with another key", secret, aKey(1), "or that file is damaged")

	// A part whose key is gone: the server would make another one for it, and remove its messages.
	for path := range before {
		if filepath.Ext(path) == ".key" && filepath.Base(path) != "meta.key" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	unlike("a part without its key", secret, aKey(1), "bring that file back")
}

// TestReadKey: a key that is too short is refused, and the error does not have it.
func TestReadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.ReadKey(path); !errors.Is(err, eventlog.ErrKey) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a short key: %v", err)
	}
	if err := os.WriteFile(path, append(aKey('k'), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := embedded.ReadKey(path); err != nil || !bytes.Equal(key, aKey('k')) {
		t.Errorf("a line of text: %q, %v", key, err)
	}
	if key, err := embedded.ReadKey(""); key != nil || err != nil {
		t.Errorf("no file: %q, %v", key, err)
	}
	if _, err := embedded.ReadKey(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestEncryptedEpochs: each epoch of a log with a key is encrypted, and the key of each is tried before the log is opened.
func TestEncryptedEpochs(t *testing.T) {
	dir := t.TempDir()
	filled(t, dir, aKey(1))
	l := openTest(t, embedded.Options{Dir: dir, Key: aKey(1)})
	closeEpoch(t, l)
	c := commit(moveOf("b"), "1", 0, 1)
	c.Events[0].Data = []byte(`{"text":"` + planted + `"}`)
	mustAppend(t, l, c)
	dir = copied(t, dir, l)
	before, has := content(t, dir)
	if has {
		t.Error("the text is found in the files")
	}
	l = openTest(t, embedded.Options{Dir: dir, Key: aKey(1)})
	if n := len(replayed(t, l, 0)); n != 43 {
		t.Errorf("%d commits", n)
	}
	dir = copied(t, dir, l)
	// The server would remove the messages of this part.
	for path := range before {
		if strings.Contains(path, "SCUTE_2") && filepath.Ext(path) == ".key" && filepath.Base(path) != "meta.key" {
			if err := os.WriteFile(path, make([]byte, 64), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, Key: aKey(1)})
	wantErr(t, err, eventlog.ErrKey, "SCUTE_2")
}
