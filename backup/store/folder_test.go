package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/archive"
)

// newArchive creates a complete backup with an ID in a folder.
func newArchive(t *testing.T, id string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	w, err := archive.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": map[string]any{"name": "prod", "namespace": "fleet", "uid": "u", "resourceVersion": "7"},
	}}
	if err := w.Put(u); err != nil {
		t.Fatal(err)
	}
	ref := object.Ref{Group: "cluster.x-k8s.io", Kind: "Cluster", Namespace: "fleet", Name: "prod"}
	err = w.Finish(&archive.Index{
		Version: archive.Version, ID: id, TakenAt: time.Unix(1_800_000_000, 0), Namespace: "fleet", Clusters: []string{"prod"},
		Objects: []archive.Entry{{Item: mover.Item{Ref: ref, UID: "u", ResourceVersion: "7", Version: "v1beta2"}, File: w.File(ref)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func openFolder(t *testing.T) (*Folder, string) {
	t.Helper()
	dir := t.TempDir()
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, dir
}

func list(t *testing.T, s Store, folder string) (names []string) {
	t.Helper()
	if err := s.List(t.Context(), folder, func(name string) error { names = append(names, name); return nil }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// TestBackup checks that a downloaded backup equals the uploaded one, that a backup is complete only with its last
// file, and that only the backup with the given ID is removed.
func TestBackup(t *testing.T) {
	f, _ := openFolder(t)
	ctx := t.Context()
	place := "fleet/nightly/one"
	if head, err := CompleteHead(ctx, f, place); err != nil || head.ID != "" {
		t.Errorf("Complete without a backup = %+v, error %v", head, err)
	}
	bytes, err := Upload(ctx, f, place, newArchive(t, "id-1"))
	if err != nil || bytes == 0 {
		t.Fatalf("Upload = %d bytes, error %v", bytes, err)
	}
	if head, err := CompleteHead(ctx, f, place); err != nil || head.ID != "id-1" || head.TakenAt.Unix() != 1_800_000_000 {
		t.Errorf("Complete = %+v, error %v", head, err)
	}
	back := filepath.Join(t.TempDir(), "back")
	if err := Download(ctx, f, place, back); err != nil {
		t.Fatal(err)
	}
	if a, err := archive.Open(back, nil); err != nil || a.Index.ID != "id-1" {
		t.Errorf("Open of the downloaded backup: %v", err)
	}
	if err := Remove(ctx, f, place, "id-2"); !errors.Is(err, ErrForeign) {
		t.Errorf("Remove with another ID = %v, want ErrForeign", err)
	}
	if n := len(list(t, f, place)); n != 3 {
		t.Errorf("%d files remain after Remove with another ID, want 3", n)
	}
	if err := f.Delete(ctx, place+"/"+archive.SumsFile); err != nil {
		t.Fatal(err)
	}
	if head, err := CompleteHead(ctx, f, place); err != nil || head.ID != "" {
		t.Errorf("Complete without the last file = %+v, error %v", head, err)
	}
	if err := Download(ctx, f, place, filepath.Join(t.TempDir(), "none")); !errors.Is(err, archive.ErrIncomplete) {
		t.Errorf("Download of an incomplete backup = %v, want ErrIncomplete", err)
	}
	for range 2 { // removal is idempotent
		if err := Remove(ctx, f, place, "id-1"); err != nil {
			t.Error(err)
		}
	}
	if left := list(t, f, "."); len(left) > 0 {
		t.Errorf("files remain: %v", left)
	}
}

// TestBelow checks that ListBackups returns the newest complete backups below a path, of all
// schedules.
func TestBelow(t *testing.T) {
	f, _ := openFolder(t)
	ctx := t.Context()
	for _, place := range []string{"fleet/nightly/20261125T0130Z-b", "fleet/hourly/20261125T0200Z-c", "fleet/nightly/20261124T0130Z-a", "other/x/20261126T0000Z-d"} {
		if _, err := Upload(ctx, f, place, newArchive(t, "id")); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Delete(ctx, "other/x/20261126T0000Z-d/"+archive.SumsFile); err != nil {
		t.Fatal(err)
	}
	places, all, err := ListBackups(ctx, f, ".", 2)
	if want := []string{"fleet/nightly/20261125T0130Z-b", "fleet/hourly/20261125T0200Z-c"}; err != nil || all != 3 || !slices.Equal(places, want) {
		t.Errorf("Below = %v of %d, error %v; want %v of 3", places, all, err, want)
	}
	if places, all, err := ListBackups(ctx, f, "other", 2); err != nil || all != 0 || len(places) > 0 {
		t.Errorf("Below without complete backups = %v of %d, error %v", places, all, err)
	}
}

// TestForeignFiles checks that Remove leaves files that do not belong to a backup.
func TestForeignFiles(t *testing.T) {
	f, dir := openFolder(t)
	if _, err := Upload(t.Context(), f, "fleet/one", newArchive(t, "id-1")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"notes.txt", "objects/notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, "fleet", "one", name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Remove(t.Context(), f, "fleet/one", "id-1"); err != nil {
		t.Fatal(err)
	}
	if left := list(t, f, "."); strings.Join(left, " ") != "fleet/one/notes.txt fleet/one/objects/notes.txt" {
		t.Errorf("remaining files = %v, want the foreign ones", left)
	}
}

// TestNoEscape checks that neither a name nor a symbolic link leads out of the folder.
func TestNoEscape(t *testing.T) {
	f, dir := openFolder(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "fleet")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "fleet/x", "/etc/x"} {
		if err := f.Put(t.Context(), name, bytes.NewReader([]byte("x")), 1); err == nil {
			t.Errorf("Put(%s) succeeded", name)
		}
		if in, err := f.Get(t.Context(), name); err == nil {
			_ = in.Close()
			t.Errorf("Get(%s) succeeded", name)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("files outside the folder: %v, error %v", entries, err)
	}
}

// files returns the names in a folder, with unfinished files.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestFailedWrite checks that a failed write leaves no files: otherwise each attempt would use more space of a full
// volume.
func TestFailedWrite(t *testing.T) {
	f, dir := openFolder(t)
	if err := os.MkdirAll(filepath.Join(dir, "one", "taken"), 0o700); err != nil { // a file cannot replace a folder
		t.Fatal(err)
	}
	var got *Error
	if _, err := f.Write(t.Context(), "one", strings.NewReader("x")); !errors.As(err, &got) {
		t.Errorf("Write = %v, want an Error", err)
	}
	if there := files(t, dir); !slices.Equal(there, []string{"one"}) {
		t.Errorf("files = %v, want only the folder", there)
	}
}

// failingStore is a store that fails after left writes.
type failingStore struct {
	Store
	remaining atomic.Int32
}

func (f *failingStore) Put(ctx context.Context, name string, from io.ReaderAt, size int64) error {
	if f.remaining.Add(-1) < 0 {
		return errors.New("killed")
	}
	return f.Store.Put(ctx, name, from, size)
}

// endedReader ends a context when it is read, and never ends itself.
type endedReader struct{ end func() }

func (r endedReader) ReadAt(p []byte, _ int64) (int, error) {
	r.end()
	return len(p), nil
}

// TestTimeoutOfAWrite checks that the writing of a large file ends with its context. Otherwise a slow
// volume would count as one that hangs.
func TestTimeoutOfAWrite(t *testing.T) {
	f, dir := openFolder(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := f.Put(ctx, "a/file", endedReader{cancel}, 1<<30)
	if left, _ := os.ReadDir(filepath.Join(dir, "a")); !errors.Is(err, context.Canceled) || len(left) > 0 {
		t.Errorf("Put = %v, files %v", err, left)
	}
}

// TestKilledUpload checks that an interrupted upload is incomplete at every point, and that its files can be removed.
func TestKilledUpload(t *testing.T) {
	dir := newArchive(t, "id-1")
	for n := range 3 {
		f, _ := openFolder(t)
		dying := &failingStore{Store: f}
		dying.remaining.Store(int32(n)) //nolint:gosec // it is small
		if _, err := Upload(t.Context(), dying, "one", dir); err == nil {
			t.Fatalf("upload succeeded with %d writes", n)
		}
		if head, err := CompleteHead(t.Context(), f, "one"); err != nil || head.ID != "" {
			t.Errorf("Complete after %d writes = %+v, error %v", n, head, err)
		}
		if err := Remove(t.Context(), f, "one", "id-1"); err != nil {
			t.Error(err)
		}
		if left := list(t, f, "."); len(left) > 0 {
			t.Errorf("after %d writes and Remove, files remain: %v", n, left)
		}
	}
}
