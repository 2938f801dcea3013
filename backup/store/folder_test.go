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

// newArchive makes a complete backup with an ID in a folder.
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

// TestBackup: a backup comes back as it was, is complete with its last file only, and is removed if it is the one that was meant.
func TestBackup(t *testing.T) {
	f, _ := openFolder(t)
	ctx := t.Context()
	place := "fleet/nightly/one"
	if head, err := Complete(ctx, f, place); err != nil || head.ID != "" {
		t.Errorf("nothing is there: %+v, %v", head, err)
	}
	bytes, err := Upload(ctx, f, place, newArchive(t, "id-1"))
	if err != nil || bytes == 0 {
		t.Fatalf("%d bytes, %v", bytes, err)
	}
	if head, err := Complete(ctx, f, place); err != nil || head.ID != "id-1" || head.TakenAt.Unix() != 1_800_000_000 {
		t.Errorf("%+v, %v", head, err)
	}
	back := filepath.Join(t.TempDir(), "back")
	if err := Download(ctx, f, place, back); err != nil {
		t.Fatal(err)
	}
	if a, err := archive.Open(back, nil); err != nil || a.Index.ID != "id-1" {
		t.Errorf("what came back: %v", err)
	}
	if err := Remove(ctx, f, place, "id-2"); !errors.Is(err, ErrForeign) {
		t.Errorf("removing another one: %v", err)
	}
	if n := len(list(t, f, place)); n != 3 {
		t.Errorf("%d files are left of a backup that was not meant", n)
	}
	if err := f.Delete(ctx, place+"/"+archive.SumsFile); err != nil {
		t.Fatal(err)
	}
	if head, err := Complete(ctx, f, place); err != nil || head.ID != "" {
		t.Errorf("without its last file it is complete: %+v, %v", head, err)
	}
	if err := Download(ctx, f, place, filepath.Join(t.TempDir(), "none")); !errors.Is(err, archive.ErrIncomplete) {
		t.Errorf("an incomplete backup: %v", err)
	}
	for range 2 { // what is gone can be removed again
		if err := Remove(ctx, f, place, "id-1"); err != nil {
			t.Error(err)
		}
	}
	if left := list(t, f, "."); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestBelow: a place that is no backup knows the newest ones below it, whatever schedule they are of, and no incomplete one.
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
	places, all, err := Below(ctx, f, ".", 2)
	if want := []string{"fleet/nightly/20261125T0130Z-b", "fleet/hourly/20261125T0200Z-c"}; err != nil || all != 3 || !slices.Equal(places, want) {
		t.Errorf("%v of %d, %v; want %v of 3", places, all, err, want)
	}
	if places, all, err := Below(ctx, f, "other", 2); err != nil || all != 0 || len(places) > 0 {
		t.Errorf("where none is complete: %v of %d, %v", places, all, err)
	}
}

// TestForeignFiles: what no backup has stays where it is, beside one that is removed.
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
		t.Errorf("left: %v", left)
	}
}

// TestNoEscape: neither a name nor a symbolic link leads out of the folder.
func TestNoEscape(t *testing.T) {
	f, dir := openFolder(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "fleet")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "fleet/x", "/etc/x"} {
		if err := f.Put(t.Context(), name, bytes.NewReader([]byte("x")), 1); err == nil {
			t.Errorf("%s was written", name)
		}
		if in, err := f.Get(t.Context(), name); err == nil {
			_ = in.Close()
			t.Errorf("%s was read", name)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}

// files that are in a folder, with those that are unfinished.
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

// TestFailedWrite: a write that fails at its end leaves nothing behind, or a volume that is full would get fuller with each attempt.
func TestFailedWrite(t *testing.T) {
	f, dir := openFolder(t)
	if err := os.MkdirAll(filepath.Join(dir, "one", "taken"), 0o700); err != nil { // no file takes the place of a folder
		t.Fatal(err)
	}
	var got *Error
	if _, err := f.Write(t.Context(), "one", strings.NewReader("x")); !errors.As(err, &got) {
		t.Errorf("%v", err)
	}
	if there := files(t, dir); !slices.Equal(there, []string{"one"}) {
		t.Errorf("left: %v", there)
	}
}

// failing is a store that fails at the n-th write.
type failing struct {
	Store
	left atomic.Int32
}

func (f *failing) Put(ctx context.Context, name string, from io.ReaderAt, size int64) error {
	if f.left.Add(-1) < 0 {
		return errors.New("killed")
	}
	return f.Store.Put(ctx, name, from, size)
}

// TestKilledUpload: however far an upload came, its end makes the backup, and what it left can be removed.
func TestKilledUpload(t *testing.T) {
	dir := newArchive(t, "id-1")
	for n := range 3 {
		f, _ := openFolder(t)
		dying := &failing{Store: f}
		dying.left.Store(int32(n)) //nolint:gosec // it is small
		if _, err := Upload(t.Context(), dying, "one", dir); err == nil {
			t.Fatalf("with %d writes it is complete", n)
		}
		if head, err := Complete(t.Context(), f, "one"); err != nil || head.ID != "" {
			t.Errorf("after %d writes: %+v, %v", n, head, err)
		}
		if err := Remove(t.Context(), f, "one", "id-1"); err != nil {
			t.Error(err)
		}
		if left := list(t, f, "."); len(left) > 0 {
			t.Errorf("after %d writes, and their removal: %v", n, left)
		}
	}
}
