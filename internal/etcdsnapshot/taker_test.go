package etcdsnapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover/schedule"
	schedules "scute.dev/mover/schedule/runner"
	"scute.dev/mover/store"
	"scute.dev/remediator"
)

// world has one policy, which keeps snapshots in a folder of a volume, and an etcd.
type world struct {
	client.Reader
	taker  *Taker
	folder string
	dir    string
	member func(to io.Writer) error // writes a snapshot
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), folder: "snapshots", member: func(to io.Writer) error {
		_, err := io.WriteString(to, "what etcd has")
		return err
	}}
	w.taker = &Taker{Policies: w, Observer: w, Open: func(context.Context, *schedule.Spec) (schedules.Store, error) { return store.OpenFolder(w.dir) }}
	return w
}

func (w *world) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	*o.(*v1alpha1.RepairPolicy) = v1alpha1.RepairPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: v1alpha1.RepairPolicySpec{Etcd: &v1alpha1.RepairEtcd{Snapshot: &v1alpha1.RepairEtcdSnapshot{
			Destination: v1alpha1.BackupDestination{Volume: &v1alpha1.BackupVolume{Folder: w.folder}}, Encryption: v1alpha1.BackupEncryption{Plaintext: true},
		}}},
	}
	return nil
}

func (w *world) Snapshot(_ context.Context, _ types.NamespacedName, _ []string, to io.Writer) (node string, err error) {
	return "node-1", w.member(to)
}

func (w *world) take(ctx context.Context, name string) (remediator.SnapshotResult, error) {
	return w.taker.Take(ctx, &remediator.Facts{Owner: remediator.OwnerFacts{Owner: remediator.Owner{Namespace: "fleet", Cluster: "prod", Name: "cp"}}}, remediator.Action{Value: name})
}

// files of the volume.
func (w *world) files(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(w.dir, func(file string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, strings.TrimPrefix(file, w.dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestTakenTwice: a process that has lost the owner to another one, and does not know yet, writes into no file of that one. Each file has
// the checksum that was said of it.
func TestTakenTwice(t *testing.T) {
	w := newWorld(t)
	lost, err := w.take(t.Context(), "cp/20260501T120000Z")
	if err != nil {
		t.Fatal(err)
	}
	w.member = func(to io.Writer) error {
		_, err := io.WriteString(to, "what etcd has a minute later")
		return err
	}
	other, err := w.take(t.Context(), "cp/20260501T120000Z")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []remediator.SnapshotResult{lost, other} {
		data, err := os.ReadFile(filepath.Join(w.dir, r.Place))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != r.SHA256 {
			t.Errorf("%s has another checksum", r.Place)
		}
	}
}

// TestLeftovers: what processes that died have left goes with the next snapshot, unless it may still be written. Nothing else goes.
func TestLeftovers(t *testing.T) {
	w := newWorld(t)
	folder := filepath.Join(w.dir, "fleet", "snapshots", "etcd", "cp")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	stay := []string{
		"20260501T060000Z-abcdefgh.db", "20260501T113000Z-abcdefgh.db.unfinished", "20260501T130000Z-abcdefgh.db.unfinished", "20260501T06.db.unfinished",
		"20260501T060000Z-abcdefgh.db.age.keep.unfinished", "notes.unfinished",
	}
	for _, name := range append([]string{"20260501T060000Z-abcdefgh.db.unfinished", "20260501T070000Z.db.age.unfinished"}, stay...) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	done, err := w.take(t.Context(), "cp/20260501T120000Z")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{done.Place}
	for _, name := range stay {
		want = append(want, "fleet/snapshots/etcd/cp/"+name)
	}
	slices.Sort(want)
	if left := w.files(t); !slices.Equal(left, want) {
		t.Errorf("left are %v", left)
	}
}

// TestNoWayOut: a folder that leads out of the one of its namespace is refused, whatever the schema lets through.
func TestNoWayOut(t *testing.T) {
	for _, folder := range []string{"../other", "snapshots/../../other", "./snapshots", "/snapshots"} {
		w := newWorld(t)
		w.folder = folder
		_, err := w.take(t.Context(), "cp/20260501T120000Z")
		if err == nil || !strings.HasPrefix(err.Error(), "spec.etcd.snapshot.destination.volume.folder: ") {
			t.Errorf("%s: %v, with %v", folder, err, w.files(t))
		}
	}
}

// hung is a volume that does not answer before end is closed.
type hung struct {
	schedules.Store
	begun, end chan struct{}
}

func (h hung) Close() error { return nil }

func (h hung) Write(context.Context, string, io.Reader) (int64, error) {
	h.begun <- struct{}{}
	<-h.end
	return 0, errors.New("it was unmounted")
}

// TestAVolumeThatHangs: an attempt ends when its time is over. Nothing else is begun on the volume while it hangs; afterwards it is.
func TestAVolumeThatHangs(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		h := hung{begun: make(chan struct{}, 1), end: make(chan struct{})}
		well := w.taker.Open
		w.taker.Open = func(context.Context, *schedule.Spec) (schedules.Store, error) { return h, nil }
		ctx, over := context.WithCancel(t.Context())
		go func() {
			<-h.begun
			over()
		}()
		if _, err := w.take(ctx, "cp/20260501T120000Z"); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		_, err := w.take(t.Context(), "cp/20260501T120100Z")
		var known interface{ Remedy() string }
		if !errors.As(err, &known) || !strings.HasPrefix(err.Error(), "spec.etcd.snapshot.destination.volume: it hangs") || known.Remedy() == "" {
			t.Errorf("%v", err)
		}
		close(h.end)
		synctest.Wait()
		w.taker.Open = well
		if _, err := w.take(t.Context(), "cp/20260501T120200Z"); err != nil {
			t.Error(err)
		}
	})
}

// slow is a volume on which a write ends a second after its time: what was written of it is flushed, and removed.
type slow struct{ schedules.Store }

func (slow) Close() error { return nil }

func (slow) Write(ctx context.Context, _ string, _ io.Reader) (int64, error) {
	<-ctx.Done()
	time.Sleep(time.Second)
	return 0, ctx.Err()
}

// TestASlowVolume: a volume on which a write ends soon after its time does not hang, and the attempt that follows is made.
func TestASlowVolume(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		well := w.taker.Open
		w.taker.Open = func(context.Context, *schedule.Spec) (schedules.Store, error) { return slow{}, nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := w.take(ctx, "cp/20260501T120000Z"); err == nil {
			t.Error("it is a success")
		}
		w.taker.Open = well
		if _, err := w.take(t.Context(), "cp/20260501T120100Z"); err != nil {
			t.Error(err)
		}
	})
}
