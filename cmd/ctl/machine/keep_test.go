package machine

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/cmd/ctl/show"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// A machine that is kept for forensics is shown below its owner, though it has none of its labels any more, with until when it is kept and
// how it is released.
func TestKept(t *testing.T) {
	m := workerOf("blue", "blue-md-x1")
	gone := ago(time.Hour)
	m.DeletionTimestamp, m.Labels = &gone, map[string]string{clusterv1.ClusterNameLabel: "blue"}
	m.Annotations = map[string]string{
		remediator.KeepHook:   "24h0m0s",
		object.KeptAnnotation: `{"owner":{"kind":"MachineDeployment","namespace":"fleet","name":"blue-md","uid":"u"},"apart":true}`,
	}
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
		Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
	})
	m.Status.Deletion = &clusterv1.MachineDeletionStatus{WaitForPreTerminateHookStartTime: ago(30 * time.Minute)}
	o := &Objects{Clusters: []clusterv1.Cluster{clusterOf("blue")}, Machines: []clusterv1.Machine{m}}
	for _, c := range o.Join("") {
		for _, owner := range c.Owners {
			if owner.Name != "blue-md" {
				continue
			}
			text := strings.Join(view{show.View{Now: now()}}.owner(owner, "", "", tableOptions{}), "\n")
			for _, says := range []string{"MachineDeployment blue-md", "Kept 30m", "kept for forensics; until 11:35:00Z, in 23h", "`kubectl -n fleet annotate machine blue-md-x1 " + remediator.KeepHook + "-`"} {
				if !strings.Contains(text, says) {
					t.Errorf("it does not say %q:\n%s", says, text)
				}
			}
			return
		}
	}
	t.Error("its owner is not shown")
}
