package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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

// fakeServer is an API server with the given objects. An object that a step waits for appears, or
// disappears, when the step reports that it only waits.
type fakeServer struct {
	t       *testing.T
	slot    slot // of the step
	objects map[string]map[string]any
	writes  []string // in addition to those of awaited objects
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	body, _ := io.ReadAll(r.Body)
	path, say := r.URL.Path, func(v any) { _ = json.NewEncoder(w).Encode(v) }
	resource := func(group, name, kind string, namespaced bool) {
		fmt.Fprintf(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": %q, "resources": [
			{"name": %q, "kind": %q, "namespaced": %t, "verbs": ["get", "list", "patch", "delete"]}]}`, group, name, kind, namespaced)
	}
	toys := s.slot.yielded.Load() && s.objects[crd]["status"] != nil
	switch path {
	case "/apis/example.com/v1":
		if toys {
			resource("example.com/v1", "toys", "Toy", true)
			return
		}
	case "/api":
		fmt.Fprint(w, `{"kind": "APIVersions", "versions": ["v1"]}`)
		return
	case "/api/v1":
		resource("v1", "configmaps", "ConfigMap", true)
		return
	case "/apis":
		groups := []string{"apiextensions.k8s.io", "example.com"}
		for i, group := range groups {
			groups[i] = fmt.Sprintf(`{"name": %[1]q, "versions": [{"groupVersion": "%[1]s/v1", "version": "v1"}], "preferredVersion": {"groupVersion": "%[1]s/v1", "version": "v1"}}`, group)
		}
		if !toys {
			groups = groups[:1]
		}
		fmt.Fprintf(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [%s]}`, strings.Join(groups, ","))
		return
	case "/apis/apiextensions.k8s.io/v1":
		resource("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", false)
		return
	}
	u := s.objects[path]
	switch {
	case r.Method == http.MethodPatch:
		if s.slot.yielded.Load() {
			s.t.Errorf("%s is written, or tried to be, while the step only waits", path)
		}
		if err := json.Unmarshal(body, &u); err != nil {
			s.t.Error(err)
		}
		meta, _ := u["metadata"].(map[string]any)
		meta["uid"], meta["resourceVersion"], meta["generation"] = "u"+path, "1", 1
		if r.FormValue("dryRun") == "" {
			s.objects[path] = u
			s.writes = append(s.writes, path)
		}
		say(u)
	case r.Method == http.MethodDelete:
		if s.slot.yielded.Load() {
			s.t.Errorf("%s is deleted while the step only waits", path)
		}
		s.writes = append(s.writes, path)
		meta, _ := u["metadata"].(map[string]any)
		meta["deletionTimestamp"], meta["finalizers"] = "2026-01-01T00:00:00Z", []string{"example.com/hold"}
		say(u)
	case u == nil:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
	default:
		say(u)
		meta, _ := u["metadata"].(map[string]any)
		switch {
		case !s.slot.yielded.Load():
		case meta["deletionTimestamp"] != nil:
			delete(s.objects, path)
		case u["kind"] == "CustomResourceDefinition":
			u["status"] = map[string]any{"conditions": []map[string]any{{"type": "Established", "status": "True"}}}
		}
	}
}

// step returns the kind, and a call of it.
func (s *fakeServer) step(manifests string) (*Kind, *task.Call) {
	server := httptest.NewServer(s)
	s.t.Cleanup(server.Close)
	if s.objects == nil {
		s.objects = make(map[string]map[string]any)
	}
	c := s.slot.attach(&task.Call{
		Run: "ns/run/1", Task: "apply", Attempt: 1, Namespace: "ns", With: json.RawMessage(`{"wait": false, "manifests": [` + manifests + `]}`),
		Progress: func(string) {}, Logger: slog.New(slog.DiscardHandler),
	})
	c.Record = func(_ context.Context, undo json.RawMessage, _ bool) error {
		c.Undo = undo
		return nil
	}
	return &Kind{Clusters: &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Local: true}}, c
}

const (
	crd        = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/toys.example.com"
	toy        = `{"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "t"}}`
	definition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "toys.example.com"}}`
	settings   = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}`
)

// TestDefinitionsAreWaitedForWithoutAPlace checks that a step releases its worker while it waits for a definition to be
// served, and has a worker when it writes objects of that kind.
func TestDefinitionsAreWaitedForWithoutAPlace(t *testing.T) {
	s := &fakeServer{t: t}
	k, c := s.step(definition + ", " + toy)
	if _, err := k.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if s.slot.yields.Load() != 2 || len(s.writes) != 2 { // until it is established, and until it is served
		t.Errorf("waited %d times, wrote %s", s.slot.yields.Load(), s.writes)
	}
}

// TestWhatIsGoneIsMadeInThePlace checks that an attempt releases its worker while it waits for the deletion of an
// object, and has a worker for the next object.
func TestWhatIsGoneIsMadeInThePlace(t *testing.T) {
	meta := func(name string) map[string]any { return map[string]any{"name": name, "namespace": "ns", "uid": name} }
	going := meta("a")
	going["deletionTimestamp"], going["finalizers"] = "2026-01-01T00:00:00Z", []string{"example.com/hold"}
	s := &fakeServer{t: t, objects: map[string]map[string]any{
		"/api/v1/namespaces/ns/configmaps/a": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": going},
		"/api/v1/namespaces/ns/configmaps/b": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("b")},
	}}
	k, c := s.step(settings)
	if _, err := k.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if s.slot.yields.Load() != 1 {
		t.Errorf("waited %d times, want once", s.slot.yields.Load())
	}
}

// TestUndoWorksInItsPlace checks that an undo releases its worker while it waits for the deletion of an object, and has
// a worker for the next one.
func TestUndoWorksInItsPlace(t *testing.T) {
	s := &fakeServer{t: t}
	k, c := s.step(settings)
	if _, err := k.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s.writes = nil
	if err := k.Undo(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if s.slot.yields.Load() != 2 || len(s.objects) != 0 || strings.Join(s.writes, " ") != "/api/v1/namespaces/ns/configmaps/b /api/v1/namespaces/ns/configmaps/a" {
		t.Errorf("waited %d times, deleted %s", s.slot.yields.Load(), s.writes)
	}
}
