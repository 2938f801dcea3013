package diagnose

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// TestConfigMapGoesWithTheRun checks that the ConfigMap has the WorkflowRun of the run as owner if the ServiceAccount
// may get it, and no other WorkflowRun of its name.
func TestConfigMapGoesWithTheRun(t *testing.T) {
	const mine = `{"apiVersion":"scute.dev/v1alpha1","kind":"WorkflowRun","metadata":{"namespace":"fleet","name":"up","uid":"01234567-89ab"`
	for name, c := range map[string]struct {
		run, answer string
		code        int
		owned       bool
	}{
		"its own":                {"fleet/up/01234567", mine + "}}", http.StatusOK, true},
		"one that was pushed":    {"fleet/up/3", mine + `,"annotations":{"scute.dev/run":"fleet/up/3"}}}`, http.StatusOK, true},
		"made again":             {"fleet/up/89abcdef", mine + "}}", http.StatusOK, false},
		"gone":                   {"fleet/up/01234567", `{"kind":"Status","code":404,"reason":"NotFound"}`, http.StatusNotFound, false},
		"it may not be read":     {"fleet/up/01234567", `{"kind":"Status","code":403,"reason":"Forbidden"}`, http.StatusForbidden, false},
		"of a run without a UID": {"fleet/other/01234567", mine + "}}", http.StatusOK, false},
	} {
		t.Run(name, func(t *testing.T) {
			var wrote struct {
				Metadata struct {
					OwnerReferences []struct{ Kind, Name, UID string }
				}
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.URL.Path == "/api/v1":
					_, _ = io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["patch"]}]}`)
				case r.URL.Path == "/apis/scute.dev/v1alpha1/namespaces/fleet/workflowruns/up":
					w.WriteHeader(c.code)
					_, _ = io.WriteString(w, c.answer)
				case r.Method == http.MethodPatch && strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/fleet/configmaps/diagnostics-"):
					body, err := io.ReadAll(r.Body)
					if err := json.Unmarshal(body, &wrote); err != nil {
						t.Error(err)
					}
					if err != nil {
						t.Error(err)
					}
					_, _ = w.Write(body)
				case r.URL.Path == "/api":
					_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
				default:
					_, _ = io.WriteString(w, `{"kind":"APIGroupList","groups":[]}`)
				}
			}))
			defer server.Close()
			d := &Kind{Clusters: &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }}}
			call := &task.Call{Run: c.run, Task: "collect", Namespace: "fleet", Name: "up", ServiceAccount: "runner"}
			place, err := d.writeConfigMap(t.Context(), call, &evidence{})
			if err != nil || !strings.HasPrefix(place, "fleet/diagnostics-") {
				t.Fatal(place, err)
			}
			owners := wrote.Metadata.OwnerReferences
			if owned := len(owners) == 1 && owners[0].Kind == "WorkflowRun" && owners[0].Name == "up" && owners[0].UID == "01234567-89ab"; owned != c.owned {
				t.Errorf("owners = %+v", owners)
			}
		})
	}
}
