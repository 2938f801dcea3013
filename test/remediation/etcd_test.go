package remediation

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/cloud"
	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// databaseFull checks that a growing etcd database, and one that has reached its quota, are reported with the next step
// while all machines are healthy, and that the report ends.
func databaseFull(ctx context.Context, t *testing.T) {
	const gibi = 1 << 30
	w := newWard(ctx, t, testbed.Cluster{}, func(s *v1alpha1.RepairPolicySpec) {
		s.Etcd = &v1alpha1.RepairEtcd{Interval: v1alpha1.Duration{Duration: time.Minute}}
	})
	set := func(d cloud.Database) {
		for i := range w.before {
			w.SetEtcdDatabase(w.before[i].Status.NodeRef.Name, d)
		}
	}
	set(cloud.Database{Size: gibi * 17 / 10, InUse: gibi, Quota: 2 * gibi})
	w.etcdProblems(ctx, t, v1alpha1.EtcdNearQuota)
	awaitEvent(ctx, t, "KubeadmControlPlane", w.kcp(ctx), "EtcdDatabaseLarge")

	// Without surveys, scute examines etcd because of Cluster API's own condition.
	p := &v1alpha1.RepairPolicy{}
	harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(w.policy), p))
	before := p.DeepCopy()
	p.Spec.Etcd = nil
	harness.Must(t, shared.admin.Patch(ctx, p, client.MergeFrom(before)))
	set(cloud.Database{Size: 2 * gibi, InUse: gibi, Quota: 2 * gibi, Full: true})
	w.poke(ctx)
	w.etcdProblems(ctx, t, v1alpha1.EtcdNoSpace, v1alpha1.EtcdNearQuota, v1alpha1.EtcdFragmented)
	awaitEvent(ctx, t, "KubeadmControlPlane", w.kcp(ctx), "EtcdAlarm")

	set(cloud.Database{Size: gibi, InUse: gibi, Quota: 2 * gibi})
	harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(w.policy), p))
	before = p.DeepCopy()
	p.Spec.Etcd = &v1alpha1.RepairEtcd{Interval: v1alpha1.Duration{Duration: time.Minute}}
	harness.Must(t, shared.admin.Patch(ctx, p, client.MergeFrom(before)))
	w.etcdProblems(ctx, t)
	awaitEvent(ctx, t, "KubeadmControlPlane", w.kcp(ctx), "EtcdRecovered")
	w.olderKept(ctx, t)
}

// etcdProblems waits until the policy's status has these problems of the control plane's etcd.
func (w *ward) etcdProblems(ctx context.Context, t *testing.T, kinds ...v1alpha1.EtcdProblemKind) {
	t.Helper()
	harness.Await(ctx, t, "the policy shows the problems of etcd", func() string {
		p := &v1alpha1.RepairPolicy{}
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(w.policy), p))
		var shown []v1alpha1.EtcdProblemKind
		for _, e := range p.Status.Etcd {
			shown = append(shown, e.Problem)
			if e.ControlPlane != w.kcp(ctx).Name || len(e.Members) != 3 || e.Next == "" {
				t.Fatalf("etcd status = %+v, want the control plane, 3 members and a next step", e)
			}
		}
		if slices.Equal(shown, kinds) {
			return ""
		}
		text, _ := json.Marshal(p.Status.Etcd)
		return "it shows " + string(text)
	})
}
