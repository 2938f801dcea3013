package access

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"scute.dev/internal/supervise"
	"scute.dev/workflow/task"
)

// TestPagesTakeTurns: however many tasks of one namespace list large objects, few pages are in memory at once, and those of another namespace do
// not wait for them.
func TestPagesTakeTurns(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind": "APIVersions", "versions": ["v1"]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [
				{"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap", "verbs": ["list"]}]}`)
		default:
			next := ""
			if r.FormValue("continue") == "" {
				next = "more"
			}
			fmt.Fprintf(w, `{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"continue": %q}, "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]}`, next)
		}
	}))
	defer server.Close()
	const limit, tasks = 2, 20
	clusters := &Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Pages: supervise.NewPlaces(limit)}
	selector := &ObjectSelector{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: "a=b"}
	each := func(namespace string, fn func()) {
		c := &task.Call{Namespace: namespace, ServiceAccount: "runs"}
		cluster, err := clusters.Open(t.Context(), c, ClusterRef{})
		if err != nil {
			t.Error(err)
			return
		}
		found := 0
		err = cluster.Each(t.Context(), selector, namespace, func(*unstructured.Unstructured) error {
			found++
			fn()
			return nil
		})
		if found != 2 || err != nil {
			t.Errorf("%d objects: %v", found, err)
		}
	}
	held, free := make(chan struct{}, tasks), make(chan struct{})
	var all sync.WaitGroup
	for range tasks {
		all.Go(func() {
			each("noisy", func() {
				held <- struct{}{}
				<-free
			})
		})
	}
	for range limit {
		<-held
	}
	each("quiet", func() {})
	select {
	case <-held:
		t.Errorf("more than %d pages of one namespace are in memory", limit)
	case <-time.After(100 * time.Millisecond):
	}
	close(free)
	for range 2*tasks - limit {
		<-held
	}
	all.Wait()
}
