package kinds

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/test/harness"
	"scute.dev/workflow/tasks/httprequest"
)

// TestHTTPHidesSecrets checks that secrets that a response repeats are removed.
func TestHTTPHidesSecrets(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "http-secrets")
	harness.Must(t, admin().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s"}, StringData: map[string]string{"token": "c4n4ry\n"}}))
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"you sent": %q}`, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	s := &step{
		t: t, kind: &httprequest.Kind{Clusters: clusters(true)}, namespace: ns, name: "http",
		with: `{"url": "` + server.URL + `", "headersFrom": [{"name": "Authorization", "prefix": "Bearer ", "secretRef": {"name": "s", "key": "token"}}]}`,
	}
	harness.Must(t, s.run(ctx))
	if want := `{"status":200,"body":{"you sent":"Bearer (removed)"}}`; string(s.output) != want {
		t.Errorf("output = %s, want %s", s.output, want)
	}
	status = http.StatusForbidden
	err := s.run(ctx)
	isFinal(t, err, "403", "(removed)")
	if strings.Contains(err.Error(), "c4n4ry") {
		t.Errorf("the error contains the secret: %v", err)
	}
}
