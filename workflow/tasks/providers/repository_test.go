package providers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	ctlconfig "sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"scute.dev/kube/document"
	"scute.dev/kube/guard"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

const bomb = "x: &a {k: [1, 2, 3]}\ny: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nz: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nu: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\nv: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nw: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"

// fakeHub simulates GitHub and its file storage.
type fakeHub struct {
	mu       sync.Mutex
	requests []string
}

func (h *fakeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.requests = append(h.requests, r.Host+r.URL.Path+" "+r.Header.Get("Authorization"))
	h.mu.Unlock()
	own := r.Header.Get("Authorization") == "Bearer tok-of-A"
	_, password, _ := r.BasicAuth()
	switch {
	case strings.HasPrefix(r.URL.Path, "/acme/public/releases/download/v1.0.0/"):
		fmt.Fprint(w, "a: public")
	case strings.HasPrefix(r.URL.Path, "/evil/bomb/releases/download/"):
		fmt.Fprint(w, bomb)
	case strings.HasPrefix(r.URL.Path, "/evil/plain/releases/download/"):
		http.Redirect(w, r, "http://objects.example.com/7", http.StatusFound)
	case strings.HasPrefix(r.URL.Path, "/evil/huge/releases/download/"):
		for zeros := make([]byte, 1<<20); ; {
			if _, err := w.Write(zeros); err != nil {
				return
			}
		}
	case strings.HasPrefix(r.URL.Path, "/evil/slow/releases/download/"):
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case r.URL.Path == "/repos/acme/private/releases/tags/v1.0.0" && own:
		fmt.Fprint(w, `{"tag_name": "v1.0.0", "assets": [{"id": 6, "name": "d.yaml"}, {"id": 7, "name": "c.yaml"}]}`)
	case r.URL.Path == "/repos/acme/private/releases/assets/7" && own && r.Header.Get("Accept") == "application/octet-stream":
		http.Redirect(w, r, "https://objects.example.com/7", http.StatusFound)
	case r.Host == "objects.example.com":
		fmt.Fprint(w, "a: private"+r.Header.Get("Authorization"))
	case r.URL.Path == "/acme/private.git/info/refs" && password == "tok-of-A", r.URL.Path == "/acme/public.git/info/refs":
		fmt.Fprint(w, "001e# service=git-upload-pack\n000000f1abc HEAD\x00multi_ack\n003cabc refs/heads/v9.0.0\n003dabc refs/tags/v1.0.0\n0040abc refs/tags/v1.0.0^{}\n003dabc refs/tags/api/v1.2.0\n003dabc refs/tags/v1.1.0-rc.1\n003dabc refs/tags/vx\n0000")
	default:
		http.Error(w, "{}", http.StatusNotFound)
	}
}

// gitHubOf opens a repository of a hub for a namespace.
func gitHubOf(t *testing.T, p *Kind, namespace, name, token string) repository.Client {
	t.Helper()
	values := map[string]any{}
	if token != "" {
		values["GITHUB_TOKEN"] = token
	}
	config, err := ctlconfig.New(t.Context(), "", ctlconfig.InjectReader(&reader{values: values}))
	if err != nil {
		t.Fatal(err)
	}
	provider := ctlconfig.NewProvider("toy", "https://github.com/"+name+"/releases/v1.0.0/c.yaml", clusterctlv1.InfrastructureProviderType)
	opened, err := p.repositories(namespace)(t.Context(), provider, config)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func daemon(t *testing.T) *Kind {
	t.Helper()
	g, err := guard.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Kind{Clusters: &access.Clusters{Guard: g}}
}

func serve(t *testing.T, p *Kind) *fakeHub {
	t.Helper()
	h := &fakeHub{}
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.InsecureSkipVerify = true
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
	p.transport = transport
	return h
}

func raw(ctx context.Context, opened repository.Client) (string, error) {
	content, err := opened.Components().Raw(ctx, repository.ComponentsOptions{Version: "v1.0.0"})
	return string(content), err
}

// TestGitHub checks that public files are read without a token, and that what one namespace reads with its token is not
// cached for another.
func TestGitHub(t *testing.T) {
	p := daemon(t)
	h := serve(t, p)
	for range 2 {
		if text, err := raw(t.Context(), gitHubOf(t, p, "b", "acme/private", "")); err == nil || !strings.Contains(err.Error(), "needs github-token") {
			t.Errorf("read without a token = %q, error %v", text, err)
		}
		if text, err := raw(t.Context(), gitHubOf(t, p, "b", "acme/private", "bad")); err == nil {
			t.Errorf("read with a bad token = %q, want an error", text)
		}
		if text, err := raw(t.Context(), gitHubOf(t, p, "a", "acme/private", "tok-of-A")); err != nil || text != "a: private" {
			t.Errorf("read with the token = %q, error %v", text, err)
		}
	}
	h.requests = nil
	if text, err := raw(t.Context(), gitHubOf(t, p, "a", "acme/public", "tok-of-A")); err != nil || text != "a: public" || strings.Join(h.requests, "") != "github.com/acme/public/releases/download/v1.0.0/c.yaml " {
		t.Errorf("read of a public file = %q, error %v, requests %q", text, err, h.requests)
	}
	for name, token := range map[string]string{"acme/public": "", "acme/private": "tok-of-A"} {
		versions, err := gitHubOf(t, p, "a", name, token).GetVersions(t.Context())
		if fmt.Sprint(versions) != "[v1.0.0 v1.1.0-rc.1]" || err != nil {
			t.Errorf("versions of %s = %v, error %v", name, versions, err)
		}
	}
	if versions, err := gitHubOf(t, p, "b", "acme/private", "").GetVersions(t.Context()); err == nil {
		t.Errorf("versions without a token = %v, want an error", versions)
	}
}

// TestHostileRepositories checks that content that is large, or expands to much, is refused, and that reading ends with
// its context.
func TestHostileRepositories(t *testing.T) {
	p := daemon(t)
	serve(t, p)
	if _, err := raw(t.Context(), gitHubOf(t, p, "evil", "evil/huge", "")); !errors.Is(err, guard.ErrTooLarge) {
		t.Errorf("read of a huge file = %v, want ErrTooLarge", err)
	}
	if _, err := raw(t.Context(), gitHubOf(t, p, "evil", "evil/bomb", "")); !errors.Is(err, document.ErrTooLarge) {
		t.Errorf("read of a file of aliases = %v, want ErrTooLarge", err)
	}
	if _, err := raw(t.Context(), gitHubOf(t, p, "evil", "evil/plain", "")); err == nil || !strings.Contains(err.Error(), "not encrypted") {
		t.Errorf("read with a redirect to http = %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := raw(ctx, gitHubOf(t, p, "evil", "evil/slow", "")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read of a slow file = %v, want DeadlineExceeded", err)
	}
	for text, values := range map[string]map[string]string{"${A}": {"A": bomb}, strings.Repeat("${A}", 10_000): {"A": strings.Repeat("a", 100_000)}} {
		value := func(name string) (string, error) { return values[name], nil }
		if _, err := access.NewTemplateProcessor().Process([]byte(text), value); !errors.Is(err, document.ErrTooLarge) && !errors.Is(err, access.ErrTemplate) {
			t.Errorf("Process with large variables = %v", err)
		}
	}
}

// TestGitHubWaitsForNobody checks that slow reads, and requests with an invalid token, do not delay other namespaces.
func TestGitHubWaitsForNobody(t *testing.T) {
	p := daemon(t)
	serve(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	var hostile sync.WaitGroup
	for i := range 8 {
		slow := gitHubOf(t, p, "evil", []string{"evil/slow", "acme/private"}[i%2], "bad")
		hostile.Go(func() { _, _ = raw(ctx, slow) })
	}
	begin := time.Now()
	if text, err := raw(t.Context(), gitHubOf(t, p, "good", "acme/public", "")); err != nil || text != "a: public" {
		t.Errorf("read = %q, error %v", text, err)
	}
	if took := time.Since(begin); took > fileTimeout/6 {
		t.Errorf("read took %s", took)
	}
	cancel()
	hostile.Wait()
}

// TestGitHubIsGuarded checks that a redirect or a host name cannot reach the daemon's own network, and that the proxy
// of the environment is not used.
func TestGitHubIsGuarded(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the daemon's own machine was requested") }))
	defer server.Close()
	t.Setenv("HTTPS_PROXY", server.URL)
	from, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = files{clusters: &access.Clusters{}}.get(t.Context(), "https://"+from.Host+"/acme", nil)
	if !task.IsFinal(err) || !strings.Contains(err.Error(), "--allow-addresses") {
		t.Errorf("get = %v, want a final error with advice", err)
	}
}

// TestReadsNoFileOfTheDaemon checks that a version that is a path does not lead to files of the daemon's machine, where
// the library looks for overrides.
func TestReadsNoFileOfTheDaemon(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"c.yaml", "metadata.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3, kind: Metadata}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := daemon(t)
	serve(t, p)
	opened, path := gitHubOf(t, p, "evil", "acme/public", ""), strings.Repeat("../", 20)+dir
	if text, err := opened.Components().Raw(t.Context(), repository.ComponentsOptions{Version: path}); err == nil {
		t.Errorf("components = %s, want an error", text)
	}
	if _, err := opened.Metadata(path).Get(t.Context()); err == nil {
		t.Error("the metadata was read")
	}
}

// TestSecretsOfVariables checks that errors contain no part of a Secret's value, in any escaping.
func TestSecretsOfVariables(t *testing.T) {
	hidden := []string{"hunter2-line\n", "{\"key\": \"hunter2-json\"}", "hunter2-a\nhunter2-b\n"}
	for _, said := range []string{
		`region "hunter2-line" is not known`, `cannot use "{\"key\": \"hunter2-json\"}"`, `{"key": "hunter2-json"} is not known`, `line 2: hunter2-b`, `"hunter2-a\nhunter2-b\n" is not known`,
	} {
		a := &providerManager{secretValues: hidden, responseError: new(atomic.Pointer[error])}
		if err := a.redactError(errors.New(said)); strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error for %s = %v, want no part of a secret", said, err)
		}
	}
}
