package providers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// TestDeploymentsByPages checks that the Deployments of a provider are listed in pages: any user may label Deployments,
// which could exceed the memory.
func TestDeploymentsByPages(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch next := "more"; {
		case r.URL.Path == "/api":
			fmt.Fprint(w, `{"kind": "APIVersions", "versions": []}`)
		case r.URL.Path == "/apis":
			fmt.Fprint(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apps",
				"versions": [{"groupVersion": "apps/v1", "version": "v1"}], "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"}}]}`)
		case r.URL.Path == "/apis/apps/v1":
			fmt.Fprint(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps/v1", "resources": [
				{"name": "deployments", "singularName": "deployment", "namespaced": true, "kind": "Deployment", "verbs": ["list"]}]}`)
		case r.FormValue("limit") == "" || r.FormValue("labelSelector") != "cluster.x-k8s.io/provider=cluster-api":
			t.Errorf("%s has no limit, or another label", r.URL)
			fallthrough
		case r.FormValue("continue") != "":
			next = ""
			fallthrough
		default:
			fmt.Fprintf(w, `{"kind": "DeploymentList", "apiVersion": "apps/v1", "metadata": {"continue": %q}, "items": [{"metadata": {"namespace": "capi-system", "name": "a%s"}}]}`,
				next, r.FormValue("continue"))
		}
	}))
	defer server.Close()
	clusters := &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Local: true}
	cluster, err := clusters.Open(t.Context(), &task.Call{Namespace: "fleet"}, access.ClusterRef{})
	if err != nil {
		t.Fatal(err)
	}
	a := &providerManager{cluster: cluster}
	list, err := a.deployments(t.Context(), provider{Type: "CoreProvider", Name: "cluster-api"})
	var names []string
	for i := range list {
		names = append(names, list[i].Name)
	}
	if strings.Join(names, " ") != "a amore" || err != nil {
		t.Errorf("deployments = %v, error %v", names, err)
	}
}
