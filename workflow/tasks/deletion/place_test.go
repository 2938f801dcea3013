package deletion

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

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

// TestDeleteWorksInItsPlace checks that Delete releases its worker while it waits for the API server, or in its undo
// for an object that is being deleted, and has a worker for the next object.
func TestDeleteWorksInItsPlace(t *testing.T) {
	var place slot
	held := false
	var done []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		refuse := func(code int, reason string) {
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "code": %d}`, reason, code)
		}
		name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		object := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns", "name": %q, "uid": %q}}`, name, name)
		switch {
		case name == "api":
			fmt.Fprint(w, `{"kind": "APIVersions", "versions": ["v1"]}`)
		case name == "apis":
			fmt.Fprint(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`)
		case name == "v1":
			fmt.Fprint(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [
				{"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap", "verbs": ["get", "create", "delete"]}]}`)
		case r.Method == http.MethodDelete && name == "a" && !place.yielded.Load():
			refuse(http.StatusUnauthorized, "Unauthorized") // as an API server that is being upgraded
		case r.Method == http.MethodDelete, r.Method == http.MethodPost:
			if place.yielded.Load() && name != "a" {
				t.Errorf("%s %s without a worker", r.Method, r.URL.Path)
			}
			done = append(done, r.Method+" "+name)
			fmt.Fprint(w, object)
		case name == "a" && held:
			held = !place.yielded.Load()
			fmt.Fprint(w, strings.Replace(object, `"uid"`, `"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/hold"], "uid"`, 1))
		case len(done) >= 2:
			refuse(http.StatusNotFound, "NotFound")
		default:
			fmt.Fprint(w, object)
		}
	}))
	defer server.Close()
	k := &Kind{Clusters: &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Local: true}}
	c := place.attach(&task.Call{
		Run: "ns/run/1", Task: "delete", Attempt: 1, Namespace: "ns",
		With:     json.RawMessage(`{"wait": false, "objects": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}, {"apiVersion": "v1", "kind": "ConfigMap", "name": "b"}]}`),
		Progress: func(string) {}, Logger: slog.New(slog.DiscardHandler),
	})
	c.Record = func(_ context.Context, undo json.RawMessage, _ bool) error {
		c.Undo = undo
		return nil
	}
	if _, err := k.Run(t.Context(), c); err != nil || place.yields.Load() != 1 {
		t.Fatalf("Run = %v; waited %d times: %s", err, place.yields.Load(), done)
	}
	held = true
	if err := k.Undo(t.Context(), c); err != nil || place.yields.Load() != 2 {
		t.Fatalf("Undo = %v; waited %d times: %s", err, place.yields.Load(), done)
	}
	if strings.Join(done, " ") != "DELETE a DELETE b POST configmaps POST configmaps" {
		t.Errorf("requests = %s", done)
	}
}
