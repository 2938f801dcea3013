package remediation

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// aboutToStop checks notices for a machine that stays healthy. A distant maintenance that is cancelled has no effect. A
// taint of the Node causes a replacement, which is created before the machine is deleted.
func aboutToStop(ctx context.Context, t *testing.T) {
	const maintenance, spot = "example.com/maintenance-at", "example.com/spot-interruption"
	w := newWard(ctx, t, testbed.Cluster{}, func(s *v1alpha1.RepairPolicySpec) {
		s.Notices = []v1alpha1.RepairNotice{
			{Type: v1alpha1.NoticeMachineAnnotation, Key: maintenance, LeadTime: &v1alpha1.Duration{Duration: time.Hour}},
			{Type: v1alpha1.NoticeNodeTaint, Key: spot},
		}
	})
	annotate := func(change func(annotations map[string]string)) {
		m := &clusterv1.Machine{}
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(w.victim), m))
		before := m.DeepCopy()
		if m.Annotations == nil {
			m.Annotations = make(map[string]string)
		}
		change(m.Annotations)
		harness.Must(t, shared.admin.Patch(ctx, m, client.MergeFrom(before)))
	}
	stops := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	annotate(func(a map[string]string) { a[maintenance] = stops })
	harness.Await(ctx, t, "the maintenance is seen", func() string {
		switch mark := w.mark(ctx, t); {
		case mark == nil:
			return "there is no mark"
		case mark.State != "Failing" || mark.Source != "Notice" || mark.Reason != "Machine annotation "+maintenance+" "+stops:
			t.Fatalf("unhealthy annotation = %+v, want the maintenance", mark)
		}
		return ""
	})
	awaitEvent(ctx, t, "Machine", w.victim, "NoticeSeen")
	annotate(func(a map[string]string) { delete(a, maintenance) })
	harness.Await(ctx, t, "the maintenance is forgotten", func() string {
		if mark := w.mark(ctx, t); mark != nil {
			return "the mark says " + mark.Reason
		}
		return ""
	})
	w.olderKept(ctx, t)

	harness.Must(t, w.SetNodeTaint(ctx, w.victim.Status.NodeRef.Name, corev1.Taint{Key: spot, Effect: corev1.TaintEffectNoSchedule}))
	w.surges(ctx, t)
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim})
	w.healed(ctx, t)
	if !w.diary.decided(w.victim.Name, "RolloutSurge") {
		t.Error("no decision RolloutSurge")
	}
	remembered(ctx, t, w.policy, w.victim.Name, "RolloutSurge")
	w.quorum.never(t, 3, 4)
}
