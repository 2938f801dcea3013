package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

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

// cleaner is a provider whose clusters leave two Secrets.
type cleaner struct{}

func (cleaner) RemainingObjects(*Context, Cluster) (left []*unstructured.Unstructured, err error) {
	for _, name := range []string{"first", "second"} {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("v1")
		u.SetKind("Secret")
		u.SetName(name)
		left = append(left, u)
	}
	return left, nil
}

// TestDeletionWorksInItsPlace checks that the run releases its worker while it waits for the cluster, and for each
// object that it leaves, and has a worker for each deletion.
func TestDeletionWorksInItsPlace(t *testing.T) {
	m := &manager{}
	var place slot
	there := map[string]bool{"first": true, "second": true}
	deleting := make(map[string]bool) // until they were read once more
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete && place.yielded.Load() {
			t.Errorf("%s was deleted without a worker", r.URL.Path)
		}
		name, secret := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], strings.Contains(r.URL.Path, "/secrets/")
		switch {
		case !secret:
			m.ServeHTTP(w, r)
		case there[name]:
			deletion := ""
			if deleting[name] {
				there[name], deletion = false, `, "deletionTimestamp": "2026-05-01T12:00:00Z"`
			}
			deleting[name] = r.Method == http.MethodDelete
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "fleet", "name": %[1]q, "uid": %[1]q%[2]s}}`, name, deletion)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
		}
	}))
	defer server.Close()
	clusters := &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Local: true}
	c := NewContext(t.Context(), place.attach(&task.Call{
		Run: "fleet/delete/1", Task: "delete-cluster", Record: func(context.Context, json.RawMessage, bool) error { return nil },
	}), clusters)
	err := Target{Context: &c, Cluster: Cluster{Namespace: "fleet", Name: "prod"}}.Delete(cleaner{}, func() error { return nil })
	if err != nil || !m.deleted || there["first"] || there["second"] {
		t.Errorf("Delete = %v; deleted %t, left %v", err, m.deleted, there)
	}
	if waited := place.yields.Load(); waited != 3 {
		t.Errorf("waited %d times, want 3", waited)
	}
}
