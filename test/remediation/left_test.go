package remediation

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestLeftUnhealthy checks machines that become unhealthy while no daemon runs, more than the MachineHealthCheck's
// limit allows, and then recover. The check creates no request for them, so it never reports them as healthy again. The
// daemon does.
func TestLeftUnhealthy(t *testing.T) {
	ctx := harness.Deadline(t, 8*time.Minute)
	in, _, err := shared.installed()
	harness.Must(t, err)
	dir, err := in.NewLogDir()
	harness.Must(t, err)
	d := daemon(t, scuted.DaemonOptions{LogDir: dir})
	w := newWard(ctx, t, testbed.Cluster{}, nil)
	check := awaitCheck(ctx, t, w.cluster, 1)
	healthy := func(want int32) {
		t.Helper()
		harness.Await(ctx, t, fmt.Sprintf("the MachineHealthCheck finds %d machines healthy", want), func() string {
			harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(check), check))
			if now := check.Status.CurrentHealthy; now == nil || *now != want || check.Status.ObservedGeneration != check.Generation {
				return fmt.Sprintf("%+v", check.Status)
			}
			return ""
		})
	}
	healthy(3)
	harness.Must(t, d.Stop(ctx))

	ill := choose(w.before, 2)
	for i := range ill {
		harness.Must(t, kubeletDead(ctx, w.cluster, &ill[i]))
	}
	unhealthy := func() (names []string) {
		for i := range ill {
			m := &clusterv1.Machine{}
			harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(&ill[i]), m))
			if conditions.IsFalse(m, clusterv1.MachineHealthCheckSucceededCondition) {
				names = append(names, m.Name)
			}
		}
		return names
	}
	// Cluster API's health check controller has been observed to lose its own requeue, and then found nothing for eight
	// minutes. A change of the check triggers it.
	changed := time.Now()
	harness.Await(ctx, t, "Cluster API says that both are unhealthy", func() string {
		now := unhealthy()
		if len(now) == len(ill) {
			return ""
		}
		if time.Since(changed) > 30*time.Second {
			changed = time.Now()
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"test":%q}}}`, changed)
			harness.Must(t, shared.admin.Patch(ctx, check, client.RawPatch(types.MergePatchType, []byte(patch))))
		}
		return fmt.Sprint(now)
	})
	for i := range ill {
		harness.Must(t, wellAgain(ctx, w.cluster, &ill[i]))
	}
	healthy(3)
	t.Logf("%d machines recovered; Cluster API still reports %v as unhealthy", len(ill), unhealthy())

	daemon(t, scuted.DaemonOptions{LogDir: dir})
	harness.Await(ctx, t, "nothing is unhealthy", func() string {
		if now := unhealthy(); len(now) > 0 {
			return fmt.Sprint(now)
		}
		return ""
	})
	w.stays(ctx, t)
	harness.Must(t, shared.side.WaitAvailable(ctx, w.Namespace, w.Name))
}
