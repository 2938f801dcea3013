package providers

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube/guard"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// serveSecret returns an API server with one Secret.
func serveSecret(key, value string) *http.ServeMux {
	mux := http.NewServeMux()
	for path, body := range map[string]string{
		"/api":  `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
		"/api/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [
			{"name": "secrets", "singularName": "secret", "namespaced": true, "kind": "Secret", "verbs": ["get"]}]}`,
		"/api/v1/namespaces/n/secrets/s": fmt.Sprintf(`{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s", "namespace": "n"}, "data": {%q: %q}}`,
			key, base64.StdEncoding.EncodeToString([]byte(value))),
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, body)
		})
	}
	return mux
}

func kubeconfigFor(server *httptest.Server) string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
		"clusters": [{"name": "c", "cluster": {"server": "%s/prefix", "certificate-authority-data": %q}}], "users": [{"name": "u", "user": {"token": "c4n4ry"}}]}`,
		server.URL, base64.StdEncoding.EncodeToString(ca))
}

// TestProvidersStayAtTheServer checks that clusterctl's library uses the API server and the credentials of a Secret
// without writing them to a file, and follows no redirects.
func TestProvidersStayAtTheServer(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed: %s %s", r.Method, r.URL)
	}))
	defer elsewhere.Close()
	api := http.StripPrefix("/prefix", serveSecret("value", "found"))
	moved, large := false, false
	target := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer c4n4ry" {
			t.Errorf("%s without credentials", r.URL)
		}
		if moved {
			http.Redirect(w, r, elsewhere.URL+"/latest/meta-data", http.StatusTemporaryRedirect)
			return
		}
		if large {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"kind": "Secret", "data": {"value": [%s""]}}`, strings.Repeat(`"",`, 5<<20))
			return
		}
		api.ServeHTTP(w, r)
	}))
	defer target.Close()
	own := httptest.NewServer(serveSecret("value", kubeconfigFor(target)))
	defer own.Close()
	g, err := guard.New([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	p := &Kind{Clusters: &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: own.URL}, nil }, Guard: g}}
	call, on := &task.Call{Namespace: "n", ServiceAccount: "sa"}, access.ClusterRef{KubeconfigSecretRef: &access.SecretKey{Name: "s"}}
	cluster, err := p.Clusters.Open(t.Context(), call, on)
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.open(t.Context(), call, cluster, on, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if written, err := os.ReadFile(a.kubeconfig.Path); err != nil || strings.Contains(string(written), "c4n4ry") {
		t.Errorf("kubeconfig for clusterctl's library = %s, error %v", written, err)
	}
	c, err := a.clusterClient.Proxy().NewClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	get := func() (string, error) {
		s := &corev1.Secret{}
		err := c.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "s"}, s)
		return string(s.Data["value"]), err
	}
	if value, err := get(); err != nil || value != "found" {
		t.Errorf("Get = %q, error %v", value, err)
	}
	large = true
	_, err = get()
	if err = a.redactError(err); !errors.Is(err, guard.ErrTooLarge) || !task.IsFinal(err) {
		t.Errorf("Get of a large response = %v, want ErrTooLarge", err)
	}
	_, _ = get()
	large = false
	if _, err := get(); err != nil || task.IsFinal(a.redactError(http.ErrServerClosed)) {
		t.Errorf("Get after a large response = %v", err)
	}
	moved = true
	if _, err := get(); err == nil || !strings.Contains(err.Error(), "redirects") {
		t.Errorf("Get with a redirect = %v", err)
	}
	config, err := a.clusterClient.Proxy().GetConfig()
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndexByte(config.Host, '/')
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host[:at]+"/api", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("request without the path = %s", response.Status)
	}
}
