package backup

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/inventory"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

const (
	depot  = "depot"
	folder = "green/minutely" // of the schedule, in the bucket
)

// scheduled is the state of TestScheduledBackups.
type scheduled struct {
	*testing.T
	ctx    context.Context //nolint:containedctx // of the whole test, as T is
	store  *store
	on     client.Client
	daemon *scuted.Daemon
	dir    string // of the log
}

// TestScheduledBackups checks that a BackupSchedule backs up a running cluster to a real store, despite faults of the
// credentials, the daemon and the store. Then the management cluster is lost, and a third one takes over the machines.
func TestScheduledBackups(t *testing.T) {
	ctx := harness.Deadline(t, 15*time.Minute)
	green := shared.to
	_, err := green.CreateCluster(ctx, testbed.Tiny(depot, "vault"))
	harness.Must(t, err)
	harness.Must(t, green.WaitAvailable(ctx, depot, "vault"))
	in, err := scuted.Install(ctx, green, shared.programs)
	harness.Must(t, err)
	on, err := in.Client()
	harness.Must(t, err)
	s := &scheduled{T: t, ctx: ctx, store: newStore(ctx, t), on: on}
	if s.dir, err = in.NewLogDir(); err != nil {
		t.Fatal(err)
	}
	s.start(in)

	key, recipient := newKey(t)
	s.credentials("wrong", s.store.ca)
	harness.Must(t, s.on.Create(ctx, s.schedule(recipient)))
	s.fails("CredentialsRefused", "spec.destination.s3.credentialsSecretRef")
	s.credentials(secret, nil)
	s.fails("CertificateNotTrusted", "spec.destination.s3.endpoint")
	s.credentials(secret, s.store.ca)
	first := s.succeeds("its credentials are right", func(*v1alpha1.BackupSchedule) bool { return true })
	if first.Status.LastScheduleTime == nil || first.Status.NextScheduleTime == nil || first.Status.LastRequest != "" {
		t.Errorf("status = %+v, want a backup by the schedule", first.Status)
	}
	s.patch(`{"spec":{"suspend":true}}`)
	s.killed(in)
	s.storeAway()
	s.retention()

	backup := s.get().Status.Backups[0]
	harness.Must(t, s.daemon.Stop(ctx))
	said := s.scutectl(in, "logs", "backupschedule", "minutely", "-n", depot, "--log", s.dir)
	for _, fact := range []string{"schedule set", "backup requested", "backup started", "backup failed", "backup complete", "backups removed", backup.ID} {
		if !strings.Contains(said, fact) {
			t.Errorf("the log lacks %q:\n%s", fact, said)
		}
	}
	s.takenOver(key, backup)
}

// schedule returns a BackupSchedule that runs every minute.
func (s *scheduled) schedule(recipient string) *v1alpha1.BackupSchedule {
	last := int32(2)
	return &v1alpha1.BackupSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: depot, Name: "minutely"},
		Spec: v1alpha1.BackupScheduleSpec{
			Schedule: "* * * * *", Clusters: v1alpha1.BackupSelection{All: true}, Retention: v1alpha1.BackupRetention{KeepLast: &last},
			Encryption: v1alpha1.BackupEncryption{Recipients: []string{recipient}},
			Destination: v1alpha1.BackupDestination{S3: &v1alpha1.BackupS3{
				Endpoint: s.store.endpoint, Bucket: bucket, Prefix: "green", CredentialsSecretRef: v1alpha1.BackupSecretRef{Name: "store"},
			}},
		},
	}
}

func (s *scheduled) start(in *scuted.Installation) {
	s.daemon = harness.Daemon(s.T, in, scuted.DaemonOptions{LogDir: s.dir})
}

func (s *scheduled) credentials(secret string, ca []byte) {
	o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: depot, Name: "store"}}
	harness.Must(s.T, client.IgnoreNotFound(s.on.Delete(s.ctx, o)))
	o = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: depot, Name: "store"},
		Data:       map[string][]byte{"accessKeyID": []byte(access), "secretAccessKey": []byte(secret), "ca.crt": ca},
	}
	harness.Must(s.T, s.on.Create(s.ctx, o))
}

func (s *scheduled) get() *v1alpha1.BackupSchedule {
	s.Helper()
	b := &v1alpha1.BackupSchedule{}
	harness.Must(s.T, s.on.Get(s.ctx, client.ObjectKey{Namespace: depot, Name: "minutely"}, b))
	return b
}

func (s *scheduled) patch(patch string) {
	s.Helper()
	b := &v1alpha1.BackupSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: depot, Name: "minutely"}}
	harness.Must(s.T, s.on.Patch(s.ctx, b, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// ask requests a backup now.
func (s *scheduled) ask(value string) {
	s.Helper()
	s.patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationBackUpNow, value))
}

// fails waits until the schedule is not Ready for a reason and the message names a field.
func (s *scheduled) fails(reason, field string) {
	s.Helper()
	harness.Await(s.ctx, s.T, "the schedule fails: "+reason, func() string {
		b := s.get()
		c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
		if c != nil && c.Status == metav1.ConditionFalse && c.Reason == reason && strings.Contains(c.Message, field) {
			return ""
		}
		return fmt.Sprintf("%s: %+v", b.Status.Message, c)
	})
}

// succeeds waits until a backup is complete, nothing fails or is in progress, and is returns true.
func (s *scheduled) succeeds(when string, is func(*v1alpha1.BackupSchedule) bool) *v1alpha1.BackupSchedule {
	s.Helper()
	var b *v1alpha1.BackupSchedule
	harness.Await(s.ctx, s.T, "the schedule succeeds when "+when, func() string {
		b = s.get()
		if b.Status.Kept > 0 && meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.ConditionReady) && b.Status.Phase != v1alpha1.BackupRunning && is(b) {
			return ""
		}
		return fmt.Sprintf("%s: %s, %d kept", b.Status.Phase, b.Status.Message, b.Status.Kept)
	})
	return b
}

func asked(value string) func(*v1alpha1.BackupSchedule) bool {
	return func(b *v1alpha1.BackupSchedule) bool { return b.Status.LastRequest == value }
}

// killed kills the daemon during a backup. The incomplete backup does not count, the next daemon makes the backup, and
// nothing incomplete remains.
func (s *scheduled) killed(in *scuted.Installation) {
	s.Helper()
	for i, n := range []int{1, 6} { // a backup has more than twenty files
		before, _ := s.store.backups(s.T, folder)
		dead := make(chan error, 1)
		daemon := s.daemon
		s.store.onPut(n, func() { dead <- daemon.Kill(context.WithoutCancel(s.ctx)) })
		value := fmt.Sprintf("to be killed, %d", i)
		s.ask(value)
		select {
		case err := <-dead:
			harness.Must(s.T, err)
		case <-s.ctx.Done():
			s.Fatal("the daemon was not killed")
		}
		if after, _ := s.store.backups(s.T, folder); !slices.Equal(before, after) {
			s.Errorf("a backup of a killed daemon is complete: %v, before: %v", after, before)
		}
		s.start(in)
		s.succeeds("its daemon runs again", asked(value))
		s.clean()
	}
}

// clean waits until the bucket has no incomplete backup.
func (s *scheduled) clean() {
	s.Helper()
	harness.Await(s.ctx, s.T, "nothing incomplete is in the bucket", func() string {
		_, incomplete := s.store.backups(s.T, folder)
		return strings.Join(incomplete, ", ")
	})
}

// storeAway stops the store, requests a backup, and starts the store again.
func (s *scheduled) storeAway() {
	s.Helper()
	harness.Must(s.T, s.store.process.Kill(s.ctx))
	s.ask("while the store is away")
	s.fails("StoreFailed", "spec.destination.s3.endpoint")
	s.store.start(s.ctx, s.T)
	s.succeeds("the store is back", asked("while the store is away"))
	s.clean()
}

// retention requests more backups than are kept. The newest two are kept, and also a folder that does not belong to the
// schedule.
func (s *scheduled) retention() {
	s.Helper()
	foreign := filepath.Join(s.store.dir, bucket, filepath.FromSlash(folder), "somebody-else")
	harness.Must(s.T, os.MkdirAll(foreign, 0o755))
	harness.Must(s.T, os.WriteFile(filepath.Join(foreign, "SHA256SUMS"), nil, 0o600))
	var last *v1alpha1.BackupSchedule
	for i := range 3 {
		value := fmt.Sprintf("retention, %d", i)
		s.ask(value)
		last = s.succeeds("more backups are asked for", func(b *v1alpha1.BackupSchedule) bool { return asked(value)(b) && b.Status.Kept == 2 })
	}
	want := []string{"somebody-else"}
	for _, b := range last.Status.Backups {
		want = append(want, filepath.Base(b.Path))
	}
	slices.Sort(want)
	harness.Await(s.ctx, s.T, "the bucket has what is kept", func() string {
		complete, _ := s.store.backups(s.T, folder)
		if slices.Equal(complete, want) {
			return ""
		}
		return fmt.Sprintf("%v, want %v", complete, want)
	})
}

// takenOver stops the management cluster, and restores the backup from the store in a third one.
func (s *scheduled) takenOver(key string, backup v1alpha1.BackupRecord) {
	s.Helper()
	ctx, green := s.ctx, shared.to
	before, err := inventory.Take(ctx, green, depot)
	harness.Must(s.T, err)
	machines, mark := snapshot(ctx, s.T)
	harness.Must(s.T, green.StopControllers())
	harness.Must(s.T, green.KillAPIServer(ctx))
	harness.Must(s.T, green.KillEtcd(ctx))

	third, ca := shared.bed.Side("third"), filepath.Join(s.TempDir(), "ca.crt")
	harness.Must(s.T, os.WriteFile(ca, s.store.ca, 0o600))
	s.Setenv("AWS_ACCESS_KEY_ID", access)
	s.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	restore := []string{
		"restore", "clusters", "--from", backup.Path, "--store-endpoint", s.store.endpoint, "--store-ca-file", ca, "--identity-file", key, "--source-is-gone",
	}
	schedule := slices.Clone(restore)
	schedule[3] = backup.Path[:strings.LastIndex(backup.Path, "/")]
	run(ctx, s.T, third, 1, []string{"no complete backup", "--from " + backup.Path}, schedule...)
	run(ctx, s.T, third, 0, []string{"backup " + backup.ID, "1 cluster of namespace depot (vault)", "restored"}, restore...)
	after, err := inventory.Take(ctx, third, depot)
	harness.Must(s.T, err)
	own := func(name string) bool { return name != "Secret store" && !strings.HasPrefix(name, "BackupSchedule ") }
	if want := slices.DeleteFunc(slices.Clone(before.Names), func(n string) bool { return !own(n) }); !slices.Equal(want, after.Names) {
		s.Errorf("missing: %s; unexpected: %s", inventory.Missing(want, after.Names), inventory.Missing(after.Names, want))
	}
	harness.Must(s.T, third.WaitAvailable(ctx, depot, "vault"))
	unchanged(ctx, s.T, machines, mark)
	s.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	run(ctx, s.T, third, 1, []string{"AWS_SECRET_ACCESS_KEY: the store rejects them"}, restore...)
}

func (s *scheduled) scutectl(in *scuted.Installation, args ...string) string {
	s.Helper()
	cmd := in.Scutectl(s.ctx, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		s.Fatalf("scutectl %s: %v\n%s", strings.Join(args, " "), err, &said)
	}
	return said.String()
}
