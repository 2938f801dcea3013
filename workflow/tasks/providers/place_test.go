package providers

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctlcluster "sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// slot simulates the slot of a run for one call. It is granted whenever the call requests it again.
type slot struct {
	yielded atomic.Bool
	yields  atomic.Int32
}

func (s *slot) attach(c *task.Call) *task.Call {
	c.Yield = func() {
		if !s.yielded.Swap(true) {
			s.yields.Add(1)
		}
	}
	c.Reacquire = func(context.Context) error {
		s.yielded.Store(false)
		return nil
	}
	return c
}

// low is a client of clusterctl's library that only lists the components of a provider.
type low struct {
	ctlcluster.Client
	proxy
}

func (l low) Proxy() ctlcluster.Proxy { return l.proxy }

type proxy struct {
	ctlcluster.Proxy
	list func(provider string) []unstructured.Unstructured
}

func (p proxy) ListResources(_ context.Context, labels map[string]string, _ ...string) ([]unstructured.Unstructured, error) {
	return p.list(labels[clusterv1.ProviderNameLabel]), nil
}

// TestRemovalWorksInItsPlace checks that an undo releases its worker while it waits for the removal of a provider's
// components, and has a worker when it deletes those of the next one.
func TestRemovalWorksInItsPlace(t *testing.T) {
	var place slot
	var deleted []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind": "APIVersions", "versions": ["v1"]}`)
			return
		case "/apis":
			fmt.Fprint(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`)
			return
		case "/api/v1":
			fmt.Fprint(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [
				{"name": "services", "singularName": "service", "namespaced": true, "kind": "Service", "verbs": ["delete"]}]}`)
			return
		}
		if place.yielded.Load() {
			t.Errorf("%s was deleted without a worker", r.URL.Path)
		}
		deleted = append(deleted, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Success"}`)
	}))
	defer server.Close()
	call := place.attach(&task.Call{Namespace: "fleet", Progress: func(string) {}, Logger: slog.New(slog.DiscardHandler)})
	clusters := &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Local: true}
	cluster, err := clusters.Open(t.Context(), call, access.ClusterRef{})
	if err != nil {
		t.Fatal(err)
	}
	a := &providerManager{call: call, cluster: cluster, clusterClient: low{proxy: proxy{list: func(provider string) []unstructured.Unstructured {
		if place.yielded.Load() { // the components are gone
			return nil
		}
		u := unstructured.Unstructured{}
		u.SetAPIVersion("v1")
		u.SetKind("Service")
		u.SetNamespace("toys")
		u.SetName(provider)
		return []unstructured.Unstructured{u}
	}}}}
	record := changeRecord{Install: []installRecord{
		{provider: provider{Type: "InfrastructureProvider", Name: "first", Namespace: "toys"}}, {provider: provider{Type: "InfrastructureProvider", Name: "second", Namespace: "toys"}},
	}}
	if err := a.remove(t.Context(), record.Install, nil); err != nil {
		t.Fatal(err)
	}
	if strings.Join(deleted, " ") != "infrastructure-second infrastructure-first" || place.yields.Load() != 2 {
		t.Errorf("waited %d times, deleted %s", place.yields.Load(), deleted)
	}
}
