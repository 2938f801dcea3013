package archive_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/archive"
)

func key(t *testing.T) *age.X25519Identity {
	t.Helper()
	k, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func cluster() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
		"metadata": map[string]any{"namespace": "fleet", "name": "prod", "uid": "u1", "resourceVersion": "7", "generation": int64(3)},
		"spec":     map[string]any{"paused": false},
	}}
}

func secret() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"tls.key": "cHJpdmF0ZQ=="},
		"metadata": map[string]any{"namespace": "fleet", "name": "prod-ca", "uid": "u2", "resourceVersion": "8"},
	}}
}

func entry(w *archive.Writer, u *unstructured.Unstructured, level int) archive.Entry {
	o := object.Observe(u)
	return archive.Entry{Item: mover.Item{Ref: o.Ref, Version: o.Version, UID: o.UID, ResourceVersion: o.ResourceVersion, Level: level}, File: w.File(o.Ref)}
}

// write writes an archive of two objects.
func write(t *testing.T, dir string, recipients ...age.Recipient) *archive.Index {
	t.Helper()
	w, err := archive.Create(dir, recipients)
	if err != nil {
		t.Fatal(err)
	}
	index := &archive.Index{Version: archive.Version, ID: "b1", TakenAt: time.Unix(0, 0).UTC(), Namespace: "fleet", Clusters: []string{"prod"}}
	for i, u := range []*unstructured.Unstructured{cluster(), secret()} {
		if err := w.Put(u); err != nil {
			t.Fatal(err)
		}
		index.Objects = append(index.Objects, entry(w, u, i))
	}
	index.Objects[1].Owners = []object.Owner{{Ref: index.Objects[0].Ref, Version: "v1beta2"}}
	if err := w.Finish(index); err != nil {
		t.Fatal(err)
	}
	return index
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	k := key(t)
	for name, recipients := range map[string][]age.Recipient{"plain": nil, "encrypted": {k.Recipient()}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new")
			want := write(t, dir, recipients...)
			a, err := archive.Open(dir, []age.Identity{k})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, a.Index); d != "" {
				t.Error(d)
			}
			for _, u := range []*unstructured.Unstructured{cluster(), secret()} {
				got, err := a.Object(object.Observe(u).Ref)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(u.Object, got.Object); d != "" {
					t.Error(d)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "UNFINISHED")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the UNFINISHED file remains: %v", err)
			}
		})
	}
}

func TestWithoutTheIdentityNothingIsRead(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, key(t).Recipient())
	if _, err := archive.Open(dir, []age.Identity{key(t)}); !errors.Is(err, archive.ErrIdentity) {
		t.Errorf("Open with another identity = %v, want ErrIdentity", err)
	}
	if _, err := archive.Open(dir, nil); err == nil || !strings.Contains(err.Error(), "--identity-file") {
		t.Errorf("Open without an identity = %v, want advice to set --identity-file", err)
	}
	for _, file := range files(t, dir) {
		data, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(data), "cHJpdmF0ZQ") {
			t.Errorf("%s contains the key, or error %v", file, err)
		}
	}
}

// TestEveryBitCounts flips bits of each file, truncates it, and removes it. Open must report each damage.
func TestEveryBitCounts(t *testing.T) {
	k := key(t)
	dir := t.TempDir()
	write(t, dir, k.Recipient())
	damaged := func(what string) {
		t.Helper()
		_, err := archive.Open(dir, []age.Identity{k})
		if !errors.Is(err, archive.ErrDamaged) && !errors.Is(err, archive.ErrIncomplete) {
			t.Errorf("%s: Open = %v, want ErrDamaged or ErrIncomplete", what, err)
		}
		if errors.Is(err, archive.ErrDamaged) && !strings.Contains(err.Error(), ": use another copy of the backup") {
			t.Errorf("%s: error without a remedy: %v", what, err)
		}
	}
	for _, file := range files(t, dir) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		set := func(data []byte) {
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for at := 0; at < len(data); at += 1 + len(data)/50 {
			flipped := slices.Clone(data)
			flipped[at] ^= 1 << (at % 8)
			set(flipped)
			damaged(file)
		}
		set(data[:len(data)/2])
		damaged(file + ", cut")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		damaged(file + ", away")
		set(data)
	}
	if _, err := archive.Open(dir, []age.Identity{k}); err != nil {
		t.Errorf("Open of the repaired archive = %v", err)
	}
}

// TestUnfinished checks that an unfinished archive can be written again, and that a folder with other files or a
// complete archive is refused.
func TestUnfinished(t *testing.T) {
	dir := t.TempDir()
	w, err := archive.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	left := secret()
	left.SetName("left")
	if err := errors.Join(w.Put(cluster()), w.Put(left)); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Open(dir, nil); !errors.Is(err, archive.ErrIncomplete) {
		t.Errorf("Open of an unfinished archive = %v, want ErrIncomplete", err)
	}
	write(t, dir)
	if a, err := archive.Open(dir, nil); err != nil || len(a.Index.Objects) != 2 || len(files(t, dir)) != 4 {
		t.Errorf("archive written again: error %v, files %v", err, files(t, dir))
	}
	if _, err := archive.Create(dir, nil); !errors.Is(err, archive.ErrComplete) {
		t.Errorf("Create over a complete archive = %v, want ErrComplete", err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Create(other, nil); err == nil {
		t.Error("Create accepted a folder with other files")
	}
}

// TestChangedAfterItWasOpened checks that a file that changed after Open is reported as damaged.
func TestChangedAfterItWasOpened(t *testing.T) {
	dir := t.TempDir()
	index := write(t, dir)
	a, err := archive.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, index.Objects[1].File)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), "cHJpdmF0ZQ", "YW5vdGhlcgo", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Object(index.Objects[1].Ref); !errors.Is(err, archive.ErrDamaged) || !strings.HasSuffix(err.Error(), ": use another copy of the backup, or an older one") {
		t.Errorf("Object = %v, want ErrDamaged with a remedy", err)
	}
}

// TestWhatADeathLeaves checks that an archive can be written to a folder in which a process was killed while it wrote a
// file.
func TestWhatADeathLeaves(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "UNFINISHED.tmp1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, dir)
	if left := files(t, dir); len(left) != 4 {
		t.Errorf("files = %v, want 4", left)
	}
}

// TestAnObjectThatWasNotWritten checks that Finish fails if an object of the index was not written.
func TestAnObjectThatWasNotWritten(t *testing.T) {
	dir := t.TempDir()
	w, err := archive.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	index := write(t, t.TempDir())
	if err := w.Put(cluster()); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(index); err == nil {
		t.Error("Finish succeeded without the Secret")
	}
}

// TestTwoWriters checks that Finish fails if another process wrote to the same folder.
func TestTwoWriters(t *testing.T) {
	dir := t.TempDir()
	first, err := archive.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := archive.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := cluster()
	changed.SetResourceVersion("9")
	if err := errors.Join(first.Put(cluster()), second.Put(changed)); err != nil {
		t.Fatal(err)
	}
	index := &archive.Index{Version: archive.Version, ID: "b1", Namespace: "fleet", Clusters: []string{"prod"}, Objects: []archive.Entry{entry(first, cluster(), 0)}}
	if err := first.Finish(index); err == nil {
		t.Error("Finish succeeded with files of the other writer")
	}
}

func TestAnIndexThatCannotBeFollowed(t *testing.T) {
	for name, spoil := range map[string]func(*archive.Index){
		"another format": func(x *archive.Index) { x.Version = "scute.dev/backup/v9" },
		"twice":          func(x *archive.Index) { x.Objects[1] = x.Objects[0] },
		"order":          func(x *archive.Index) { x.Objects[0].Level = 5 },
		"owner missing": func(x *archive.Index) {
			x.Objects[0].Owners = x.Objects[1].Owners
			x.Objects[0].Owners[0].Ref.Name = "nobody"
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w, err := archive.Create(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			index := write(t, t.TempDir())
			spoil(index)
			if err := w.Finish(index); err == nil {
				t.Error("Finish succeeded")
			}
		})
	}
}

// TestAnIndexOfAnotherVersion checks that an index with a field that this program does not know is
// refused, such as the fields of a backup that was made before they were renamed: without them, a
// restore does not know which objects stay paused.
func TestAnIndexOfAnotherVersion(t *testing.T) {
	for name, c := range map[string]struct{ field, want string }{
		"of this version": {`"pausedByUser":true`, ""}, "paused by a user": {`"held":true`, `unknown field "held"`},
		"reports its pause": {`"answers":true`, `unknown field "answers"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir)
			index, sums := filepath.Join(dir, archive.IndexFile), filepath.Join(dir, archive.SumsFile)
			before, err := os.ReadFile(index)
			if err != nil {
				t.Fatal(err)
			}
			after := bytes.Replace(before, []byte(`"uid": "u1"`), []byte(`"uid": "u1",`+c.field), 1)
			list, err := os.ReadFile(sums)
			if err != nil {
				t.Fatal(err)
			}
			list = bytes.Replace(list, fmt.Appendf(nil, "%x", sha256.Sum256(before)), fmt.Appendf(nil, "%x", sha256.Sum256(after)), 1)
			if err := errors.Join(os.WriteFile(index, after, 0o600), os.WriteFile(sums, list, 0o600)); err != nil {
				t.Fatal(err)
			}
			a, err := archive.Open(dir, nil)
			if c.want == "" && (err != nil || !a.Index.Objects[0].PausedByUser) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Open = %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestNamesThatAreTooLong(t *testing.T) {
	w, err := archive.Create(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	u := secret()
	u.SetName(strings.Repeat("a", 250))
	u.SetUID(types.UID("u3"))
	if err := w.Put(u); err != nil {
		t.Error(err)
	}
}

func files(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestMost checks that a write beyond the limit is refused, and that objects that are written again or dropped do not
// count twice.
func TestMost(t *testing.T) {
	w, err := archive.Create(filepath.Join(t.TempDir(), "backup"), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.MaxBytes = 8 << 10
	for range 3 {
		if err := errors.Join(w.Put(cluster()), w.Put(secret())); err != nil {
			t.Fatal(err)
		}
	}
	other := secret()
	other.SetName("other")
	if err := w.Put(other); !errors.Is(err, archive.ErrTooLarge) {
		t.Errorf("Put beyond the limit = %v, want ErrTooLarge", err)
	}
	if err := errors.Join(w.Drop(object.Observe(secret()).Ref), w.Put(other)); err != nil {
		t.Error(err)
	}
}
