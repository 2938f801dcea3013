package hold

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

// server is an API server with one object. Writes with another resource version are conflicts.
type server struct {
	t  *testing.T
	mu sync.Mutex
	u  *unstructured.Unstructured
	// before is called ahead of each write.
	before func()
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPatch {
		if s.before != nil {
			s.before()
		}
		body, _ := io.ReadAll(r.Body)
		var patch unstructured.Unstructured
		if err := json.Unmarshal(body, &patch.Object); err != nil {
			s.t.Error(err)
		}
		if patch.GetResourceVersion() != s.u.GetResourceVersion() {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409}`)
			return
		}
		old, _ := s.u.MarshalJSON()
		merged, err := jsonpatch.MergePatch(old, body)
		if err != nil {
			s.t.Error(err)
		}
		if err := s.u.UnmarshalJSON(merged); err != nil {
			s.t.Error(err)
		}
		s.u.SetResourceVersion(s.u.GetResourceVersion() + "0")
	}
	_ = json.NewEncoder(w).Encode(s.u)
}

// serveSuspended serves a Kustomization with spec.suspend, and returns it with the connection.
func serveSuspended(t *testing.T, value any, meta map[string]any) (*server, *kube.Cluster, kube.Type, pause.Root) {
	t.Helper()
	metadata := map[string]any{"namespace": "gitops", "name": "apps", "uid": "u", "resourceVersion": "1"}
	maps.Copy(metadata, meta)
	spec := map[string]any{}
	if value != nil {
		spec["suspend"] = value
	}
	s := &server{t: t, u: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": metadata, "spec": spec,
	}}}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	c, err := kube.Connect("test", &rest.Config{Host: h.URL})
	if err != nil {
		t.Fatal(err)
	}
	typ := kube.Type{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization", Plural: "kustomizations", Versions: []string{"v1"}, Namespaced: true}
	return s, c, typ, pause.Root{Ref: object.Ref{Group: typ.Group, Kind: typ.Kind, Namespace: "gitops", Name: "apps"}, UID: "u"}
}

// TestAValueThatChangedAfterTheRecord checks that Set fails if the value changed since it was recorded: Restore would
// overwrite it with the recorded value.
func TestAValueThatChangedAfterTheRecord(t *testing.T) {
	for name, c := range map[string]struct{ recorded, now any }{
		"written":  {nil, false},
		"removed":  {false, nil},
		"the same": {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, cluster, typ, root := serveSuspended(t, c.now, nil)
			err := Switch{Field: "suspend", On: true, Off: c.recorded, Exact: true}.Set(t.Context(), cluster, typ, root, RunHolder("run"))
			if changed := c.recorded != c.now; errors.Is(err, ErrChanged) != changed || !changed && err != nil {
				t.Errorf("Set = %v with spec %v", err, s.u.Object["spec"])
			}
		})
	}
}

// TestAPauseThatIsLetGoDuringTheRestore checks that Restore resumes the object if the user who had taken over the pause
// released it just before the write.
func TestAPauseThatIsLetGoDuringTheRestore(t *testing.T) {
	s, cluster, typ, root := serveSuspended(t, true, map[string]any{
		"annotations":   map[string]any{object.PauseAnnotation: "run"},
		"managedFields": []any{map[string]any{"manager": "kubectl", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:suspend": map[string]any{}}}}},
	})
	s.before = func() {
		if s.u.GetManagedFields() != nil {
			s.u.SetManagedFields(nil)
			s.u.SetResourceVersion("2")
		}
	}
	if err := (Switch{Field: "suspend", On: true}).Restore(t.Context(), cluster, typ, root, RunHolder("run")); err != nil {
		t.Fatal(err)
	}
	if _, on := (Switch{Field: "suspend", On: true}).Read(s.u); on || FirstHolder(s.u) != (Holder{}) {
		t.Errorf("object is still paused: %v", s.u.Object)
	}
}

// TestAHolderWithoutTheEarlierState checks that a holder waits for another one whose record of the
// earlier state is gone, because somebody removed it by hand: otherwise it would record that
// holder's pause as a user's, and the object would stay paused forever.
func TestAHolderWithoutTheEarlierState(t *testing.T) {
	first, second := PauseHolder("1", "fleet", "first"), PauseHolder("2", "fleet", "second")
	s, cluster, typ, root := serveSuspended(t, true, map[string]any{"annotations": map[string]any{first.Annotation: first.ID}})
	toggle := Switch{Field: "suspend", On: true}
	set := func() error {
		root.Found = toggle.wasPaused(s.u)
		return toggle.Set(t.Context(), cluster, typ, root, second)
	}
	if err := set(); !errors.Is(err, ErrHeld) {
		t.Errorf("Set beside the first holder = %v, want ErrHeld", err)
	}
	of := root
	of.Found = false
	if err := errors.Join(toggle.Restore(t.Context(), cluster, typ, of, first), set(), toggle.Restore(t.Context(), cluster, typ, root, second)); err != nil {
		t.Fatal(err)
	}
	if _, on := toggle.Read(s.u); on || len(s.u.GetAnnotations()) > 0 {
		t.Errorf("suspended %t with annotations %v after both holders", on, s.u.GetAnnotations())
	}
}
