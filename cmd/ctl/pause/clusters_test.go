package pause

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
)

// TestWhoPausedEachCluster checks that each cluster is shown with everything that keeps it paused.
func TestWhoPausedEachCluster(t *testing.T) {
	now := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	pauses := []*v1alpha1.Pause{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "maintenance", UID: "u-1"},
		Status: v1alpha1.PauseStatus{
			StartedAt: &metav1.Time{Time: now.Add(-10 * time.Minute)}, Clusters: []v1alpha1.PauseCluster{{Name: "held", Pending: 1}, {Name: "rests"}},
			WaitingFor: []v1alpha1.PauseWaiting{{Object: "Machine.cluster.x-k8s.io fleet/m", Message: "its condition Paused is False"}},
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
                   somebody, earlier                   -        -
rests      yes     task fleet/up/1/hold                60m ago  -
                   Pause fleet/maintenance             10m ago  -
moved      yes     move fleet/away/1                   60m ago  -
by-user    yes     kubectl-patch                       60m ago  4 objects: a, b, c
annotated  yes     annotation cluster.x-k8s.io/paused  -        -
free       no      -                                   -        -`
	if diff := cmp.Diff(want, strings.Join(clusterTable(kit.View{Now: now}, list, false), "\n")); diff != "" {
		t.Error(diff)
	}
}

// lists simulates an API server with an unpaused Cluster in each of two namespaces, which forbids listing Machines. It
// counts the lists.
type lists struct{ clusters int }

func (l *lists) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	say := func(format string, args ...any) { fmt.Fprintf(w, format, args...) }
	switch r.URL.Path {
	case "/api":
		say(`{"kind": "APIVersions", "versions": []}`)
	case "/apis":
		say(`{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "cluster.x-k8s.io", "versions": [{"groupVersion": "cluster.x-k8s.io/v1beta2", "version": "v1beta2"}],
			"preferredVersion": {"groupVersion": "cluster.x-k8s.io/v1beta2", "version": "v1beta2"}}]}`)
	case "/apis/cluster.x-k8s.io/v1beta2":
		say(`{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "cluster.x-k8s.io/v1beta2", "resources": [
			{"name": "clusters", "singularName": "cluster", "namespaced": true, "kind": "Cluster", "verbs": ["get", "list", "update", "patch", "create", "delete"]},
			{"name": "machines", "singularName": "machine", "namespaced": true, "kind": "Machine", "verbs": ["get", "list", "update", "patch", "create", "delete"]}]}`)
	case "/apis/apiextensions.k8s.io/v1/customresourcedefinitions":
		say(`{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": [
			{"metadata": {"name": "clusters.cluster.x-k8s.io", "labels": {"clusterctl.cluster.x-k8s.io": ""}}},
			{"metadata": {"name": "machines.cluster.x-k8s.io", "labels": {"clusterctl.cluster.x-k8s.io": ""}}}]}`)
	case "/apis/cluster.x-k8s.io/v1beta2/clusters":
		l.clusters++
		say(`{"kind": "ClusterList", "apiVersion": "cluster.x-k8s.io/v1beta2", "metadata": {}, "items": [
			{"metadata": {"name": "prod", "namespace": "a"}, "status": {"conditions": [{"type": "Paused", "status": "False"}]}},
			{"metadata": {"name": "prod", "namespace": "b"}, "status": {"conditions": [{"type": "Paused", "status": "False"}]}}]}`)
	default:
		w.WriteHeader(http.StatusForbidden)
		say(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": "User \"x\" cannot list", "code": 403}`)
	}
}

// TestUnpausedObjects checks that objects without an acknowledgement are listed once for all
// namespaces, and that a kind that cannot be listed is reported as an error.
func TestUnpausedObjects(t *testing.T) {
	l := &lists{}
	server := httptest.NewServer(l)
	defer server.Close()
	got, err := unpausedObjects(t.Context(), &connect.Cluster{Config: &rest.Config{Host: server.URL}}, "")
	if err == nil || !strings.Contains(err.Error(), "Machine.cluster.x-k8s.io: ") {
		t.Errorf("unpausedObjects = %v, want an error about Machines", err)
	}
	want := map[types.NamespacedName][]string{
		{Namespace: "a", Name: "prod"}: {"Cluster.cluster.x-k8s.io a/prod"}, {Namespace: "b", Name: "prod"}: {"Cluster.cluster.x-k8s.io b/prod"},
	}
	if diff := cmp.Diff(want, got); diff != "" || l.clusters != 1 {
		t.Errorf("got %d lists, %s", l.clusters, diff)
	}
}

// TestWaitingForOneOfSeveral checks that objects must be asked if a Pause waits for several clusters, because its
// status does not say to which of them the listed objects belong.
func TestWaitingForOneOfSeveral(t *testing.T) {
	p := &v1alpha1.Pause{Status: v1alpha1.PauseStatus{
		Clusters:   []v1alpha1.PauseCluster{{Name: "a", Pending: 1}, {Name: "b", Pending: 1}, {Name: "c"}},
		WaitingFor: []v1alpha1.PauseWaiting{{Object: "Machine.cluster.x-k8s.io fleet/of-a"}},
	}}
	for name, want := range map[string]bool{"a": true, "b": true, "c": false} {
		if objects, ask := waitingFor(p, name); len(objects) > 0 || ask != want {
			t.Errorf("waitingFor(%s) = %v, %v", name, objects, ask)
		}
	}
}
