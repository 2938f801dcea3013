package transfer

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"scute.dev/kube/object"
)

// addMany adds n Machines with a finalizer to the source, and n Secrets.
func addMany(f *fakes, n int) {
	owner := []any{obj{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "a", "uid": string(f.src.get(f.cluster).GetUID())}}
	meta := func(finalizers ...any) obj {
		return obj{"labels": obj{"cluster.x-k8s.io/cluster-name": "a"}, "ownerReferences": owner, "finalizers": finalizers}
	}
	for i := range n {
		f.src.put(capi("Machine", fmt.Sprintf("m-%02d", i)), obj{
			"metadata": meta("machine.cluster.x-k8s.io"), "spec": obj{"providerID": "short"}, "status": obj{"nodeRef": obj{"name": "n"}},
		})
		f.src.put(object.Ref{Kind: "Secret", Namespace: "fleet", Name: fmt.Sprintf("s-%02d", i)}, obj{"metadata": meta()})
	}
}

// tryCounts counts dry runs.
type tryCounts struct{ machines, secrets int }

// TestEveryObjectIsTried checks that the preflight makes a dry run of each creation, deletion and release. There are 21
// Machines, which have finalizers, and 20 Secrets.
func TestEveryObjectIsTried(t *testing.T) {
	var mu sync.Mutex
	tried := make(map[string]tryCounts)
	count := func(r *http.Request) {
		if r.URL.Query().Get("dryRun") == "" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		n := tried[r.Method]
		switch {
		case strings.Contains(r.URL.Path+"/", "/machines/"):
			n.machines++
		case strings.Contains(r.URL.Path, "/secrets"):
			n.secrets++
		}
		tried[r.Method] = n
	}
	preflighted(t, func(f *fakes, _ object.Ref) {
		addMany(f, 20)
		f.src.hook, f.dst.hook = count, count
	}, nil)
	want := map[string]tryCounts{http.MethodPost: {21, 20}, http.MethodPatch: {21, 0}, http.MethodDelete: {21, 20}}
	if !maps.Equal(tried, want) {
		t.Errorf("tried %v, want %v", tried, want)
	}
}
