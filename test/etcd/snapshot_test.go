package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/etcdsnapshot"
	"scute.dev/kube/object"
	"scute.dev/mover/schedule"
	schedules "scute.dev/mover/schedule/runner"
	stores "scute.dev/mover/store"
	"scute.dev/remediator"
	"scute.dev/remediator/runner"
	"scute.dev/test/assets"
)

// policies has one policy, which no API server of this bed serves.
type policies struct {
	client.Reader
	policy v1alpha1.RepairPolicy
}

func (p *policies) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	p.policy.DeepCopyInto(o.(*v1alpha1.RepairPolicy))
	return nil
}

// quiet writes nothing: nobody acts on what is written here.
type quiet struct{}

func (quiet) Perform(context.Context, *remediator.Facts, remediator.Action) error { return nil }

// TestSnapshot: a snapshot of a real etcd is stored, encrypted, before the owner is asked to delete a machine first. It has what etcd has,
// is from a member that does not lead, and is restored as the guide says.
func TestSnapshot(t *testing.T) {
	p := newPlane(t)
	ctx := t.Context()
	value := bytes.Repeat([]byte("kept "), 1000)
	put, err := p.kv(0).Put(ctx, &etcd.PutRequest{Key: []byte("key"), Value: value})
	must(t, err)
	revision := put.Header.Revision
	led := p.names[p.leader(ctx)]

	p.facts.Policy.Defragmentation = remediator.Defragmentation{}
	p.facts.Policy.Snapshots = remediator.Snapshots{Wanted: true, MaxAge: time.Hour, Deadline: time.Minute}
	p.facts.Policy.Methods = map[v1alpha1.RepairMethod]bool{v1alpha1.MethodOwnerRemediation: true}
	p.facts.Policy.Checks.Node = []remediator.Check{{Type: "Ready", Status: object.Unknown}}
	p.facts.Policy.Limits = remediator.Limits{AtOnce: 1, PerWindow: 1, Window: time.Hour, StormPercent: 100, StormFloor: 9}
	p.facts.Machines[0].Conditions[clusterv1.MachineNodeReadyCondition] = remediator.Condition{Status: object.Unknown, Since: time.Now().Add(-time.Minute)}

	key, err := age.GenerateX25519Identity()
	must(t, err)
	policy := &policies{policy: v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Name: "repair"}, Spec: v1alpha1.RepairPolicySpec{Etcd: &v1alpha1.RepairEtcd{
		Snapshot: &v1alpha1.RepairEtcdSnapshot{
			Destination: v1alpha1.BackupDestination{Volume: &v1alpha1.BackupVolume{Folder: "snapshots"}},
			Encryption:  v1alpha1.BackupEncryption{Recipients: []string{key.Recipient().String()}},
		},
	}}}}
	dir := t.TempDir()
	taker := &etcdsnapshot.Taker{Policies: policy, Observer: p.Observer, Open: func(context.Context, *schedule.Spec) (schedules.Store, error) {
		return stores.OpenFolder(dir)
	}}
	l := logtest.Open(t)
	r := &runner.Runner{
		Log: l, Incarnation: "one", Observer: p, View: runner.NewRemediations(nil), Logger: slog.New(slog.DiscardHandler), Snapshot: taker.Take,
		Executor: quiet{},
	}
	owner := p.facts.Owner.Owner
	var stored remediator.SnapshotEnded
	eventually(t, "the machine is handed over", func(context.Context) error {
		if _, err := r.Reconcile(ctx, owner); err != nil { // the snapshot is taken for as long as ctx lasts
			return err
		}
		why := fmt.Errorf("the log has %+v", events(t, l, owner))
		for _, e := range events(t, l, owner) {
			switch e := e.(type) {
			case remediator.SnapshotEnded:
				stored = e
			case remediator.HandedOver:
				if why = nil; stored.Outcome != remediator.SnapshotDone {
					t.Errorf("it was handed over before: %+v", stored)
				}
			}
		}
		return why
	})
	t.Logf("%+v", stored)
	if stored.Node == led || stored.Node == "" {
		t.Errorf("%s leads, and the snapshot is from %s", led, stored.Node)
	}
	data, err := os.ReadFile(filepath.Join(dir, stored.Place))
	must(t, err)
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != stored.SHA256 || int64(len(data)) != stored.Bytes {
		t.Errorf("the file has %d bytes, and another checksum", len(data))
	}
	if !strings.HasPrefix(stored.Place, "fleet/snapshots/etcd/prod/") || !strings.HasSuffix(stored.Place, ".db.age") {
		t.Errorf("it is stored at %s", stored.Place)
	}
	// A store that takes nothing is what is told of, with the field of the policy.
	taker.Open = func(context.Context, *schedule.Spec) (schedules.Store, error) { return full{}, nil }
	_, err = taker.Take(ctx, &p.facts, remediator.Action{Value: "prod/again"})
	if want := "spec.etcd.snapshot.destination.volume: it is full"; err == nil || err.Error() != want {
		t.Errorf("%v instead of %s", err, want)
	}
	p.restore(ctx, stored, data, key)
	got, err := p.kv(0).Range(ctx, &etcd.RangeRequest{Key: []byte("key")})
	must(t, err)
	if len(got.Kvs) != 1 || !bytes.Equal(got.Kvs[0].Value, value) {
		t.Errorf("what was written is not in the etcd that was restored: %v", got)
	}
	if got.Header.Revision < revision+1_000_000_000 {
		t.Errorf("its revision is %d, after %d", got.Header.Revision, revision)
	}
	list, err := etcd.NewClusterClient(p.conns[0]).MemberList(ctx, &etcd.MemberListRequest{})
	must(t, err)
	if len(list.Members) != 1 || list.Members[0].Name != p.names[0] {
		t.Errorf("its members are %v", list.Members)
	}
}

// restore loses all members, and restores the first one by the commands of the guide.
func (p *plane) restore(ctx context.Context, stored remediator.SnapshotEnded, data []byte, key *age.X25519Identity) {
	t := p.t
	t.Helper()
	for _, member := range p.processes {
		must(t, member.Kill(ctx))
	}
	guide, err := os.ReadFile("../../docs/remediation.md")
	must(t, err)
	_, commands, _ := strings.Cut(string(guide), "```sh\necho \"$SHA256")
	commands, _, found := strings.Cut(commands, "```\n")
	if !found {
		t.Fatal("the guide has no commands that restore a snapshot")
	}
	folder, err := assets.Build(ctx, os.Stderr, assets.Etcdutl, assets.Age)
	must(t, err)
	dir, database := t.TempDir(), p.data(0)
	must(t, os.RemoveAll(database))
	must(t, os.WriteFile(filepath.Join(dir, "stored.db.age"), data, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "key.txt"), []byte(key.String()+"\n"), 0o600))
	shell := exec.CommandContext(ctx, "sh", "-exc", "echo \"$SHA256"+commands)
	shell.Dir = dir
	shell.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"),
		"FILE=stored.db.age", "SHA256="+stored.SHA256, "NAME="+p.names[0], "PEER="+p.peer(0), "DATA="+database)
	said, err := shell.CombinedOutput()
	t.Logf("%s", said)
	must(t, err)
	binaries, err := assets.Find(ctx, os.Stderr)
	must(t, err)
	p.run(0, binaries.Etcd)
	eventually(t, "the restored member answers", func(ctx context.Context) error {
		_, err := p.kv(0).Range(ctx, &etcd.RangeRequest{Key: []byte("any")})
		return err
	})
}

// full is a volume without room.
type full struct{ schedules.Store }

func (full) Close() error { return nil }

func (full) Write(_ context.Context, _ string, from io.Reader) (int64, error) {
	if _, err := io.CopyN(io.Discard, from, 10); err != nil {
		return 0, err
	}
	return 10, &stores.Error{Reason: "VolumeFailed", Field: stores.FieldVolume, Message: "it is full", Next: "look at the volume"}
}
