package app

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"scute.dev/api/v1alpha1"
)

// TestTheCacheIsBounded checks that the cache of the controllers keeps little of a large resource.
func TestTheCacheIsBounded(t *testing.T) {
	large := strings.Repeat("y", 200<<10)
	answers := map[string]string{
		"/api":                     `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":                    `{"kind":"APIGroupList","groups":[{"name":"scute.dev","versions":[{"groupVersion":"scute.dev/v1alpha1","version":"v1alpha1"}]}]}`,
		"/apis/scute.dev/v1alpha1": `{"kind":"APIResourceList","groupVersion":"scute.dev/v1alpha1","resources":[{"name":"pauses","kind":"Pause","namespaced":true,"verbs":["list","watch"]}]}`,
		"/apis/scute.dev/v1alpha1/pauses": fmt.Sprintf(`{"kind":"PauseList","apiVersion":"scute.dev/v1alpha1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"p","namespace":"n",`+
			`"annotations":{"a":%q},"managedFields":[{"manager":"m","fieldsV1":{"a":%q}}]},"spec":{"selector":{"matchLabels":{"a":%q}}}}]}`, large, large, large),
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch answer, known := answers[r.URL.Path]; {
		case !known:
			http.NotFound(w, r)
		case r.FormValue("sendInitialEvents") != "":
			http.Error(w, "", http.StatusUnprocessableEntity)
		case r.FormValue("watch") != "":
			<-r.Context().Done()
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answer)
		}
	}))
	t.Cleanup(api.Close)
	config := &rest.Config{Host: api.URL}
	mgr, err := newManager(Options{MetricsAddress: "0", HealthAddress: "0"}, config, config, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = mgr.GetCache().Start(t.Context()) }()
	mgr.GetCache().WaitForCacheSync(t.Context()) // until it has started
	list := &v1alpha1.PauseList{}
	if err := mgr.GetCache().List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(list.Items); err != nil || len(list.Items) != 1 || len(text) > 2000 {
		t.Errorf("%d Pauses have %d bytes in the cache, want at most 2000: %.300s, %v", len(list.Items), len(text), text, err)
	}
}
