package pause

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/show"
)

// Each cluster is shown with everything that keeps it paused.
func TestWhoPausedEachCluster(t *testing.T) {
	now := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	pauses := []*v1alpha1.Pause{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "maintenance", UID: "u-1"},
		Status: v1alpha1.PauseStatus{
			StartedAt: &metav1.Time{Time: now.Add(-10 * time.Minute)}, Clusters: []v1alpha1.PauseCluster{{Name: "held", Pending: 1}, {Name: "rests"}},
			WaitingFor: []v1alpha1.PauseWaiting{{Object: "Machine.cluster.x-k8s.io fleet/m", Why: "its condition Paused is False"}},
		},
	}}
	const paused = "spec: {paused: true}\nstatus: {conditions: [{type: Paused, status: 'True', lastTransitionTime: '2026-07-30T11:00:00Z'}]}\n"
	var list []pausedCluster
	for _, text := range []string{
		"metadata: {name: held, namespace: fleet, annotations: {scute.dev/pause.u-1: fleet/maintenance, scute.dev/paused-before: 'true'}}\n" + paused,
		"metadata: {name: rests, namespace: fleet, annotations: {scute.dev/pause.u-1: fleet/maintenance, scute.dev/pause: fleet/up/1/hold}}\n" + paused,
		"metadata: {name: moved, namespace: fleet, annotations: {scute.dev/move: fleet/away/1}}\n" + paused,
		"metadata: {name: by-user, namespace: fleet, managedFields: [{manager: kubectl-patch, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:spec': {'f:paused': {}}}}]}\n" + paused,
		"metadata: {name: annotated, namespace: fleet, annotations: {cluster.x-k8s.io/paused: ''}}\n",
		"metadata: {name: free, namespace: fleet}\n",
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\n"+text), &u.Object); err != nil {
			t.Fatal(err)
		}
		list = append(list, pausedBy(u, pauses))
	}
	list[3].By[0].Unacknowledged = []string{"a", "b", "c", "d"}
	want := `NAME       PAUSED  BY                                  SINCE    NOT ACKNOWLEDGED
held       yes     Pause fleet/maintenance             10m ago  1 object: Machine.cluster.x-k8s.io fleet/m: its condition Paused is False
                   somebody, before                    -        -
rests      yes     task fleet/up/1/hold                60m ago  -
                   Pause fleet/maintenance             10m ago  -
moved      yes     move fleet/away/1                   60m ago  -
by-user    yes     kubectl-patch                       60m ago  4 objects: a, b, c
annotated  yes     annotation cluster.x-k8s.io/paused  -        -
free       no      -                                   -        -`
	if diff := cmp.Diff(want, strings.Join(clusterTable(show.View{Now: now}, list, false), "\n")); diff != "" {
		t.Error(diff)
	}
}
