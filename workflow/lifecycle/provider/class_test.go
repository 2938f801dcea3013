package provider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// TestUsersOfAClass checks that the Clusters of a management cluster are listed in pages, to limit memory, and that
// without the permission to list all namespaces only one namespace is listed.
func TestUsersOfAClass(t *testing.T) {
	for _, forbidden := range []bool{false, true} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			const user = `{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"namespace": %q, "name": %q}, "spec": {"topology": {"classRef": {"name": %q, "namespace": "fleet"}}}}`
			where, items, next := "other", "", "more"
			switch all := r.URL.Path == "/apis/cluster.x-k8s.io/v1beta2/clusters"; {
			case all && forbidden:
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`)
				return
			case !all:
				where = "fleet"
			}
			switch q := r.URL.Query(); {
			case q.Get("limit") == "":
				t.Errorf("%s has no limit", r.URL)
			case q.Get("continue") == "":
				items = fmt.Sprintf(user, where, "a", "class") + "," + fmt.Sprintf(user, where, "b", "another")
			default:
				items, next = fmt.Sprintf(user, where, "c", "class"), ""
			}
			fmt.Fprintf(w, `{"kind": "ClusterList", "apiVersion": "cluster.x-k8s.io/v1beta2", "metadata": {"continue": %q}, "items": [%s]}`, next, items)
		}))
		defer server.Close()
		clusters := &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Local: true}
		on, err := clusters.Open(t.Context(), &task.Call{Namespace: "fleet"}, access.ClusterRef{})
		if err != nil {
			t.Fatal(err)
		}
		class := &unstructured.Unstructured{}
		class.SetNamespace("fleet")
		class.SetName("class")
		want := []string{"other/a", "other/c"}
		if forbidden {
			want = []string{"fleet/a", "fleet/c"}
		}
		if got, all, err := usersOf(t.Context(), on, class); err != nil || !slices.Equal(got, want) || all == forbidden {
			t.Errorf("usersOf = %v, all namespaces %t, want %v (error %v)", got, all, want, err)
		}
	}
}
