package kinds

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/test/harness"
	"scute.dev/workflow/tasks/httprequest"
)

// TestWaitOutlives checks that Wait continues after an API server was down for longer than the retries of a call.
func TestWaitOutlives(t *testing.T) {
	ctx := harness.Deadline(t, 2*time.Minute)
	ns := namespace(ctx, t, "away")
	s := waitStep(t, ns, `{"object": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}, "for": "ready"}`)
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	s.saw(ctx, "ConfigMap away/c does not exist")
	harness.Must(t, bed.Side("one").KillAPIServer(ctx))
	s.saw(ctx, "connection refused")
	harness.Must(t, bed.Side("one").StartAPIServer(ctx))
	harness.Must(t, admin().Create(ctx, configMap(ns, "c", nil)))
	harness.Must(t, <-ended)
}

// TestHTTPHeaderFromSecret checks that the value of a header from a Secret is used only in the request.
func TestHTTPHeaderFromSecret(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "http")
	harness.Must(t, admin().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "dns"}, StringData: map[string]string{"token": "c4n4ry\n", "b": "x"}}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer c4n4ry" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	s := &step{t: t, kind: &httprequest.Kind{Clusters: clusters(true)}, namespace: ns, name: "http"}
	s.with = fmt.Sprintf(`{"url": %q, "headersFrom": [{"name": "Authorization", "prefix": "Bearer ", "secretRef": {"name": "dns", "key": "token"}}]}`, server.URL)
	harness.Must(t, s.run(ctx))
	if !json.Valid(s.output) || string(s.output) != `{"status":200}` {
		t.Errorf("output = %s, want only the status", s.output)
	}
	s.with = fmt.Sprintf(`{"url": %q, "headersFrom": [{"name": "Authorization", "secretRef": {"name": "dns"}}]}`, server.URL)
	mentions(t, s.run(ctx), "Secret http/dns has 2 keys")
}
