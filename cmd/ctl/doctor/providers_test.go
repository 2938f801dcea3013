package doctor

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"scute.dev/kube"
)

type obj = map[string]any

// installation simulates a management cluster: its served kinds with their labels, and its records of providers.
type installation struct {
	core      []string // served versions of Clusters
	labels    obj      // of the infrastructure kind's definition
	inventory []obj
	operated  []obj
}

func (in installation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const core, infra, operator = "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "operator.cluster.x-k8s.io"
	list := func(items any) obj { return obj{"kind": "List", "apiVersion": "v1", "metadata": obj{}, "items": items} }
	resources := func(gv, plural, kind string) obj {
		return obj{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": gv, "resources": []obj{{"name": plural, "kind": kind, "namespaced": true, "verbs": []string{"list"}}}}
	}
	group := func(name string, versions ...string) obj {
		var all []obj
		for _, v := range versions {
			all = append(all, obj{"groupVersion": name + "/" + v, "version": v})
		}
		return obj{"name": name, "versions": all, "preferredVersion": all[0]}
	}
	definition := func(name string, labels obj) obj {
		all := obj{"clusterctl.cluster.x-k8s.io": ""}
		for k, v := range labels {
			all[k] = v
		}
		return obj{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj{"name": name, "labels": all}}
	}
	var answer obj
	switch path := r.URL.Path; {
	case path == "/api":
		answer = obj{"kind": "APIVersions", "versions": []string{"v1"}}
	case path == "/api/v1":
		answer = obj{"kind": "APIResourceList", "groupVersion": "v1", "resources": []obj{}}
	case path == "/apis":
		answer = obj{"kind": "APIGroupList", "apiVersion": "v1", "groups": []obj{group(core, in.core...), group(infra, "v1beta2")}}
	case strings.HasPrefix(path, "/apis/"+core+"/"):
		answer = resources(strings.TrimPrefix(path, "/apis/"), "clusters", "Cluster")
	case path == "/apis/"+infra+"/v1beta2":
		answer = resources(infra+"/v1beta2", "awsmachines", "AWSMachine")
	case strings.HasSuffix(path, "/customresourcedefinitions"):
		answer = list([]obj{definition("clusters."+core, nil), definition("awsmachines."+infra, in.labels)})
		answer["kind"], answer["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
	case strings.HasSuffix(path, "/providers") && in.inventory != nil:
		answer = list(in.inventory)
	case path == "/apis/"+operator+"/v1alpha2" && in.operated != nil:
		answer = resources(operator+"/v1alpha2", "coreproviders", "CoreProvider")
	case strings.HasSuffix(path, "/coreproviders") && in.operated != nil:
		answer = list(in.operated)
	}
	w.Header().Set("Content-Type", "application/json")
	if answer == nil {
		w.WriteHeader(http.StatusNotFound)
		answer = obj{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// TestClusterAPIOfEveryInstallation checks that core kinds of Cluster API are judged by their served versions and those
// of providers by their labels, and that the versions of providers are those that clusterctl or the operator records.
func TestClusterAPIOfEveryInstallation(t *testing.T) {
	inventory := []obj{{"apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Provider", "metadata": obj{"name": "cluster-api", "namespace": "capi-system"}, "providerName": "cluster-api", "type": "CoreProvider", "version": "v1.14.2"}}
	operated := []obj{{"apiVersion": "operator.cluster.x-k8s.io/v1alpha2", "kind": "CoreProvider", "metadata": obj{"name": "cluster-api", "namespace": "capi-system"}, "status": obj{"installedVersion": "v1.13.4"}}}
	both := obj{"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}
	for name, c := range map[string]struct {
		installation
		want []string // "level: part of the message", in order
	}{
		"clusterctl": {installation{[]string{"v1beta2", "v1beta1"}, both, inventory, nil}, []string{"ok: Clusters are served in v1beta2; 4 kinds", "ok: cluster-api v1.14.2"}},
		"operator":   {installation{[]string{"v1beta1", "v1beta2"}, both, nil, operated}, []string{"ok: Clusters are served in v1beta2", "ok: cluster-api v1.13.4"}},
		"both":       {installation{[]string{"v1beta2"}, both, inventory, operated}, []string{"ok: Clusters are served in v1beta2", "ok: cluster-api v1.13.4, cluster-api v1.14.2"}},
		"neither":    {installation{[]string{"v1beta2"}, nil, nil, nil}, []string{"ok: Clusters are served in v1beta2", "warning: neither clusterctl's inventory nor Cluster API's operator lists any"}},
		"contract v1beta1": {installation{[]string{"v1beta2", "v1beta1"}, obj{"cluster.x-k8s.io/v1beta1": "v1beta1_v1beta2"}, inventory, nil}, []string{
			"ok: Clusters are served in v1beta2", "ok: 1 kind of contract v1beta1, which Cluster API supports until v1.16: AWSMachine.infrastructure.cluster.x-k8s.io", "ok: cluster-api",
		}},
		"too old": {installation{[]string{"v1beta1"}, nil, inventory, nil}, []string{"problem: Clusters are served in v1beta1; scute needs v1beta2", "ok: cluster-api"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.installation)
			defer server.Close()
			cluster, err := kube.Connect("cluster", &rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			v := &diagnosis{kube: cluster, report: func(r result) { got = append(got, r.Level.String()+": "+r.Message) }}
			clusterAPI(t.Context(), v)
			providers(t.Context(), v)
			for i, want := range c.want {
				if len(got) != len(c.want) || !strings.HasPrefix(got[i], want) {
					t.Fatalf("got %q, want %q", got, c.want)
				}
			}
		})
	}
}
