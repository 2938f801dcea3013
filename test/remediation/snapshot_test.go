package remediation

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// snapshotFirst: the policy has a snapshot of etcd stored before a machine is deleted first. While its credentials are missing nothing is
// begun, and it is said why; when the policy names another place, the snapshot is stored there, and the machine is replaced.
func snapshotFirst(ctx context.Context, t *testing.T, volume string) {
	w := newWard(ctx, t, testbed.Cluster{}, func(s *v1alpha1.RepairPolicySpec) {
		s.Methods = []v1alpha1.RepairMethod{v1alpha1.MethodOwnerRemediation}
		s.Etcd = &v1alpha1.RepairEtcd{Interval: v1alpha1.Duration{Duration: time.Hour}, Snapshot: &v1alpha1.RepairEtcdSnapshot{
			Destination: v1alpha1.BackupDestination{S3: &v1alpha1.BackupS3{
				Endpoint: "https://127.0.0.1:1", Bucket: "backups", CredentialsSecretRef: v1alpha1.BackupSecretRef{Name: "missing"},
			}},
			Encryption: v1alpha1.BackupEncryption{Plaintext: true},
		}}
	})
	harness.Must(t, kubeletDead(ctx, w.cluster, w.victim))
	harness.Await(ctx, t, "it says why it waits", func() string {
		phase, message := w.diary.now(w.victim.Name)
		if strings.Contains(message, "spec.etcd.snapshot.destination.s3.credentialsSecretRef: there is no Secret missing in the namespace") {
			return ""
		}
		return fmt.Sprintf("%s: %s", phase, message)
	})
	awaitEvent(ctx, t, "KubeadmControlPlane", w.kcp(ctx), "EtcdSnapshotFailed")
	w.stays(ctx, t)
	harness.Must(t, shared.admin.Patch(ctx, w.policy, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"etcd":{"snapshot":{"destination":{"s3":null,"volume":{"folder":"snapshots"}}}}}}`))))
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim})
	w.healed(ctx, t)
	w.quorum.never(t, 2, 3)

	files, err := filepath.Glob(filepath.Join(volume, w.Namespace, "snapshots", "etcd", w.kcp(ctx).Name, "*.db"))
	harness.Must(t, err)
	if len(files) != 1 {
		t.Fatalf("the snapshots are %v", files)
	}
	awaitEvent(ctx, t, "KubeadmControlPlane", w.kcp(ctx), "EtcdSnapshotTaken")
}
