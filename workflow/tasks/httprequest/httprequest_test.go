package httprequest_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"scute.dev/kube/guard"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/httprequest"
)

func local() *httprequest.Kind { return &httprequest.Kind{Clusters: &access.Clusters{Local: true}} }

func TestHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/things", http.StatusTemporaryRedirect)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode([]string{r.Method, r.Header.Get("X-A"), r.Header.Get("Idempotency-Key"), r.Header.Get("Content-Type"), string(body)})
	}))
	defer server.Close()
	for body, want := range map[string]string{
		`{"a":1}`:    `{"status":201,"body":["POST","b","run/1/http","application/json","{\"a\":1}"]}`,
		`"as it is"`: `{"status":201,"body":["POST","b","run/1/http","text/plain; charset=utf-8","as it is"]}`,
	} {
		with := fmt.Sprintf(`{"method": "POST", "url": "%s/moved", "headers": {"X-A": "b"}, "body": %s, "expect": {"bodyContains": "run/1"}}`, server.URL, body)
		output, err := local().Run(t.Context(), &task.Call{Run: "run/1", Task: "http", With: json.RawMessage(with)})
		if err != nil {
			t.Fatal(err)
		}
		if string(output) != want {
			t.Errorf("output %s\nwant   %s", output, want)
		}
	}
}

func TestHTTPFails(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other host was requested") }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &status); err == nil {
			w.WriteHeader(status)
			fmt.Fprintf(w, "told\nwhy %s", strings.Repeat("x", 5000))
			return
		}
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	defer server.Close()
	closed := httptest.NewServer(nil)
	closed.Close()

	for name, c := range map[string]struct {
		with, says string
		final      bool
	}{
		"404":              {`{"url": "S/404?key=c4n4ry"}`, "/404: the response is 404 Not Found: told why", true},
		"408":              {`{"url": "S/408"}`, "408", false},
		"429":              {`{"url": "S/429"}`, "429", false},
		"503":              {`{"url": "S/503"}`, "503", false},
		"another status":   {`{"url": "S/200", "expect": {"status": [201]}}`, "the response is 200 OK", false},
		"another body":     {`{"url": "S/200", "expect": {"bodyContains": "done"}}`, `the response does not contain "done"`, false},
		"another host":     {`{"url": "S/away"}`, "it redirects to http://127.0.0.1", true},
		"nobody there":     {`{"url": "` + closed.URL + `?key=c4n4ry"}`, "connection refused", false},
		"no URL":           {`{"url": "example.com"}`, "with.url: it is not an http or https URL", true},
		"a password":       {`{"url": "https://u:p@example.com"}`, "use headersFrom", true},
		"a key":            {`{"url": "https://example.com?token=c4n4ry"}`, "use queryFrom", true},
		"another header":   {`{"url": "https://example.com", "headers": {"X-Api-Key": "c4n4ry"}}`, "use headersFrom", true},
		"a secret header":  {`{"url": "https://example.com", "headers": {"authorization": "x"}}`, "use headersFrom", true},
		"no such field":    {`{"url": "https://example.com", "insecure": true}`, `unknown field "insecure"`, true},
		"nobody to ask it": {`{"url": "S/200", "headersFrom": [{"name": "Authorization", "secretRef": {"name": "s"}}]}`, "with.headersFrom[0].secretRef: with.cluster: no cluster is configured", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := local().Run(t.Context(), &task.Call{Run: "r", Task: "t", Namespace: "n", With: json.RawMessage(strings.ReplaceAll(c.with, "S/", server.URL+"/"))})
			if err == nil || !strings.Contains(err.Error(), c.says) || task.IsFinal(err) != c.final {
				t.Errorf("final %t: %v\nwant %q", task.IsFinal(err), err, c.says)
			}
			if err != nil && (strings.Contains(err.Error(), "c4n4ry") || len(err.Error()) > 600) {
				t.Errorf("error has %d bytes, or contains a secret: %v", len(err.Error()), err)
			}
		})
	}
	t.Run("the daemon's own machine", func(t *testing.T) {
		daemon := &httprequest.Kind{Clusters: &access.Clusters{}}
		_, err := daemon.Run(t.Context(), &task.Call{With: json.RawMessage(`{"url": "` + server.URL + `/200"}`)})
		if !task.IsFinal(err) || !strings.Contains(err.Error(), "--allow-addresses") {
			t.Errorf("Run = %v, want a final error with advice", err)
		}
	})
	t.Run("the daemon's errors", func(t *testing.T) {
		allowed, err := guard.New([]string{"127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		daemon := &httprequest.Kind{Clusters: &access.Clusters{Guard: allowed}}
		for _, with := range []string{`{"url": "S/404"}`, `{"url": "S/503"}`, `{"url": "S/503", "expect": {"status": [503], "bodyContains": "done"}}`} {
			_, err := daemon.Run(t.Context(), &task.Call{With: json.RawMessage(strings.ReplaceAll(with, "S/", server.URL+"/"))})
			if err == nil || strings.Contains(err.Error(), "told") || strings.Contains(err.Error(), "why") {
				t.Errorf("Run with %s = %v, want an error without the body", with, err)
			}
		}
	})
}

// TestHTTPEcho checks that a Secret's value in a response is not logged, even if it is escaped for JSON or a URL.
func TestHTTPEcho(t *testing.T) {
	const secret = `c4n4ry+/"<\\=`
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode([]string{r.URL.RequestURI(), r.URL.Query().Get("key"), r.Header.Get("X-Key"), url.PathEscape(r.Header.Get("X-Key"))})
	}))
	defer echo.Close()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind": "APIVersions", "versions": ["v1"]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [{"name": "secrets", "namespaced": true, "kind": "Secret", "verbs": ["get"]}]}`)
		default:
			fmt.Fprintf(w, `{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s", "namespace": "n"}, "data": {"value": %q}}`, base64.StdEncoding.EncodeToString([]byte(secret)))
		}
	}))
	defer own.Close()
	kind := &httprequest.Kind{Clusters: &access.Clusters{Local: true, Own: func() (*rest.Config, error) { return &rest.Config{Host: own.URL}, nil }}}
	with := fmt.Sprintf(`{"url": %q, "headersFrom": [{"name": "X-Key", "secretRef": {"name": "s", "key": "value"}}], "queryFrom": [{"name": "key", "secretRef": {"name": "s", "key": "value"}}]}`, echo.URL+"/x")
	output, err := kind.Run(t.Context(), &task.Call{Run: "r", Task: "t", Namespace: "n", With: json.RawMessage(with)})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(output), "(removed)") || strings.Contains(string(output), "c4n4ry") {
		t.Errorf("output = %s", output)
	}
}

// TestHTTPKeeps checks that a rollback keeps what a request may have changed.
func TestHTTPKeeps(t *testing.T) {
	for with, keeps := range map[string]bool{
		`{"url": "http://a"}`: false, `{"url": "http://a", "method": "HEAD"}`: false, `{"url": "http://a", "method": "POST"}`: true,
		`{"url": "http://a", "method": "${tasks.a.output}"}`: true, `{}`: true,
	} {
		if got := (&httprequest.Kind{}).Irreversible(json.RawMessage(with)); got != keeps {
			t.Errorf("Irreversible(%s) = %t, want %t", with, got, keeps)
		}
	}
}
