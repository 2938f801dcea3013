package access

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"scute.dev/workflow/task"
)

// TestPinKeepsTheUID checks that the recorded UID is kept if a task runs again while its cluster denies requests.
// Without it, the undo could act on another cluster.
func TestPinKeepsTheUID(t *testing.T) {
	denied := false
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/readyz":
		case denied:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"namespaces \"kube-system\" is forbidden: User \"u\" cannot get resource"}`)
		default:
			fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u-1"}}`)
		}
	}))
	defer target.Close()
	kubeconfig := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":%q}}]}`, target.URL)
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"secrets","kind":"Secret","namespaced":true,"verbs":["get"]}]}`)
		default:
			fmt.Fprintf(w, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"n"},"data":{"value":%q}}`, base64.StdEncoding.EncodeToString([]byte(kubeconfig)))
		}
	}))
	defer own.Close()
	clusters := &Clusters{Local: true, Own: func() (*rest.Config, error) { return &rest.Config{Host: own.URL}, nil }}
	call := &task.Call{Namespace: "n", Execution: 1, Dir: t.TempDir()}
	ref := ClusterRef{KubeconfigSecretRef: &SecretKey{Name: "s"}, AllowInsecure: true}
	_, first, err := clusters.Pin(t.Context(), call, ref, Pinned{}, false)
	if err != nil || first.UID != "u-1" || first.Execution != 1 {
		t.Fatalf("Pin = %+v, error %v", first, err)
	}
	denied = true
	call.Execution = 2
	if _, again, err := clusters.Pin(t.Context(), call, ref, first, true); err == nil || again.UID != "u-1" {
		t.Errorf("Pin of a later attempt that may have done something = %+v, error %v, want an error and the UID", again, err)
	}
	if _, again, err := clusters.Pin(t.Context(), call, ref, first, false); err != nil || again.UID != "" {
		t.Errorf("Pin of a later attempt that has done nothing = %+v, error %v, want no UID", again, err)
	}
	if _, _, err := clusters.Pin(t.Context(), call, ClusterRef{}, first, true); !task.IsFinal(err) {
		t.Errorf("Pin with inputs for another cluster = %v, want a final error", err)
	}
}
