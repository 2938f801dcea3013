package provider

import (
	stdcmp "cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// fakeServer is an API server with one available Cluster.
type fakeServer struct {
	machine string // version of its only machine; empty means no machine
	changes string // label that a dry run adds to the Cluster
	refuses bool   // the API server refuses the dry run
}

func (m *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.Copy(io.Discard, r.Body)
	say := func(format string, args ...any) { fmt.Fprintf(w, format, args...) }
	cluster := func(label string) {
		say(`{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"namespace": "fleet", "name": "prod", "uid": "u-1", "labels": {"a": %q}},
			"status": {"conditions": [{"type": "Available", "status": "True"}]}}`, label)
	}
	switch path := r.URL.Path; {
	case path == "/api":
		say(`{"kind": "APIVersions", "versions": ["v1"]}`)
	case path == "/api/v1":
		say(`{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []}`)
	case path == "/apis":
		say(`{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "cluster.x-k8s.io",
			"versions": [{"groupVersion": "cluster.x-k8s.io/v1beta2", "version": "v1beta2"}], "preferredVersion": {"groupVersion": "cluster.x-k8s.io/v1beta2", "version": "v1beta2"}}]}`)
	case path == "/apis/cluster.x-k8s.io/v1beta2":
		var resources []string
		for _, kind := range []string{"Cluster", "MachineDeployment", "MachineSet", "MachinePool", "Machine"} {
			resources = append(resources, fmt.Sprintf(`{"name": %q, "singularName": %q, "namespaced": true, "kind": %q, "verbs": ["get", "list", "patch"]}`,
				strings.ToLower(kind)+"s", strings.ToLower(kind), kind))
		}
		say(`{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "cluster.x-k8s.io/v1beta2", "resources": [%s]}`, strings.Join(resources, ","))
	case strings.HasSuffix(path, "/clusters/prod") && r.Method == http.MethodGet:
		cluster("")
	case strings.HasSuffix(path, "/clusters/prod") && r.URL.Query().Get("dryRun") == "All" && !m.refuses:
		cluster(m.changes)
	case strings.HasSuffix(path, "/clusters/prod"):
		w.WriteHeader(http.StatusUnprocessableEntity)
		say(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}`)
	case strings.HasSuffix(path, "/machines") && m.machine != "":
		say(`{"kind": "MachineList", "apiVersion": "cluster.x-k8s.io/v1beta2", "metadata": {}, "items": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
			"metadata": {"namespace": "fleet", "name": "m", "labels": {"cluster.x-k8s.io/cluster-name": "prod"}}, "spec": {"clusterName": "prod", "version": %q}}]}`, m.machine)
	case strings.Contains(path, "/clusters/") || strings.Contains(path, "/namespaces/") && strings.HasSuffix(path, "/new"):
		w.WriteHeader(http.StatusNotFound)
		say(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
	default:
		say(`{"kind": "List", "apiVersion": "cluster.x-k8s.io/v1beta2", "metadata": {}, "items": []}`)
	}
}

// upgrader returns the objects of a template, and components.
type upgrader struct{ names []string }

func (u upgrader) UpgradeObjects(*Context, Cluster) (objects []*unstructured.Unstructured, err error) {
	for _, name := range u.names {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": map[string]any{"name": name},
		}})
	}
	return objects, nil
}

func (upgrader) Differences(*Context, access.ClusterRef) ([]Component, error) {
	return []Component{{Name: "CoreProvider cluster-api", OldVersion: "v1.13.0", NewVersion: "v1.14.2"}}, nil
}

// TestDecide checks that an upgrade is needed if a machine has another version, or if an object is new, differs or
// cannot be compared.
func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		fakeServer
		names []string
		want  Decision
	}{
		"nothing to do": {fakeServer{}, []string{"prod"}, Decision{}},
		"another version": {fakeServer{machine: "v1.35.2"}, []string{"prod"}, Decision{
			Needed: true, UpgradeCluster: true, Reason: "Machine m has version v1.35.2",
			Components: []Component{{Name: "Kubernetes", OldVersion: "v1.35.2", NewVersion: "v1.36.0"}},
		}},
		"another object": {fakeServer{changes: "b"}, []string{"prod"}, Decision{Needed: true, UpgradeCluster: true, Reason: "Cluster.cluster.x-k8s.io fleet/prod changes"}},
		"a new object":   {fakeServer{}, []string{"prod", "new"}, Decision{Needed: true, UpgradeCluster: true, Reason: "Cluster.cluster.x-k8s.io fleet/new is new"}},
		"refused":        {fakeServer{refuses: true}, []string{"prod"}, Decision{Needed: true, UpgradeCluster: true, Reason: "Cluster.cluster.x-k8s.io fleet/prod cannot be compared"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(&c.fakeServer)
			defer server.Close()
			clusters := &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Local: true}
			own := NewContext(t.Context(), &task.Call{Run: "run", Task: "pre-upgrade", Namespace: "fleet"}, clusters)
			p := upgrader{names: c.names}
			got, err := Target{Context: &own, Cluster: Cluster{Namespace: "fleet", Name: "prod", Version: "v1.36.0"}}.Decide(p)
			if got.Objects == "" {
				t.Error("the objects have no checksum")
			}
			got.Objects = ""
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Error(diff, err)
			}
			if err := got.Compare(&own, p, access.ClusterRef{}); err != nil || !got.Needed || got.UpgradeCluster != c.want.UpgradeCluster || len(got.Components) != len(c.want.Components)+1 {
				t.Errorf("Compare = %+v, error %v", got, err)
			}
		})
	}
}

// manyComponents has more components than an output lists.
type manyComponents struct{}

func (manyComponents) Differences(*Context, access.ClusterRef) ([]Component, error) {
	return make([]Component, access.MaxNamedObjects+2), nil
}

func TestTheDecisionIsBounded(t *testing.T) {
	var d Decision
	if err := d.Compare(nil, manyComponents{}, access.ClusterRef{}); err != nil || len(d.Components) != access.MaxNamedObjects+1 || d.Components[access.MaxNamedObjects].Name != "and 2 more" {
		t.Errorf("got %d components, error %v", len(d.Components), err)
	}
}

// TestUnchanged checks that a cluster that needed no upgrade still needs none at its turn: the template may have
// changed since, and components that were upgraded in the meantime may replace machines, which must be waited for.
func TestUnchanged(t *testing.T) {
	spec := Cluster{Namespace: "fleet", Name: "prod", Version: "v1.36.0"}
	const says = "have changed since pre-upgrade"
	for name, c := range map[string]struct {
		fakeServer
		names []string // of the objects, at its turn
		was   string   // the output of pre-upgrade, if it differs from now
		want  string
	}{
		"the same":                         {fakeServer{}, []string{"prod"}, "", ""},
		"the components have new defaults": {fakeServer{changes: "b"}, []string{"prod"}, "", ""},
		"another template":                 {fakeServer{}, []string{"prod", "new"}, "", says + " found nothing to upgrade: Cluster.cluster.x-k8s.io fleet/new is new"},
		"another that differs in nothing":  {fakeServer{}, []string{"prod", "prod"}, "", ""},
		"of an earlier version":            {fakeServer{}, []string{"prod", "new"}, `{"upgradeCluster": false}`, ""},
		"machines are being replaced":      {fakeServer{machine: "v1.35.2"}, []string{"prod"}, "", "Machine m has version v1.35.2"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(&c.fakeServer)
			defer server.Close()
			clusters := &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Local: true}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			call := &task.Call{Run: "run", Task: "upgrade-cluster", Namespace: "fleet"}
			call.Progress = func(string) { cancel() } // it waits
			own := NewContext(ctx, call, clusters)
			before, err := upgrader{names: []string{"prod"}}.UpgradeObjects(&own, spec)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range before {
				o.SetNamespace("fleet")
			}
			sum, err := checksum(before)
			if err != nil {
				t.Fatal(err)
			}
			call.Inputs = map[string]json.RawMessage{"pre-upgrade": json.RawMessage(stdcmp.Or(c.was, `{"upgradeCluster": false, "objects": "`+sum+`"}`))}
			err = Target{Context: &own, Cluster: spec}.WaitUnchanged(upgrader{names: c.names})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || task.IsFinal(err) != strings.HasPrefix(c.want, says) {
				t.Errorf("Unchanged = %v, want %q", err, c.want)
			}
		})
	}
}
