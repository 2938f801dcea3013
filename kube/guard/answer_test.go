package guard_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube/guard"
)

// newProtectedConfig returns a guarded configuration for a server on this machine.
func newProtectedConfig(t *testing.T, server *httptest.Server) *rest.Config {
	t.Helper()
	g, err := guard.New([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: server.URL}
	g.Protect(config, "n")
	return config
}

// TestAnswersAreBounded checks that an API server cannot fill the memory with an endless or highly compressed response.
func TestAnswersAreBounded(t *testing.T) {
	const most = 32 // MiB of the uncompressed response
	padding := strings.Repeat(" ", 1<<20)
	padded := func(w http.ResponseWriter, mib int) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		defer z.Close()
		for range mib {
			if _, err := fmt.Fprint(z, padding); err != nil {
				return
			}
		}
		fmt.Fprint(z, `{"apiVersion": "v1", "kind": "ConfigMapList", "items": []}`)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/small/") {
			padded(w, 1)
			return
		}
		padded(w, 4*most)
	}))
	defer server.Close()
	client, err := dynamic.NewForConfig(newProtectedConfig(t, server))
	if err != nil {
		t.Fatal(err)
	}
	list := func(namespace string) error {
		_, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := list("small"); err != nil {
		t.Errorf("response of 1 MiB: %v", err)
	}
	if err := list("large"); !errors.Is(err, guard.ErrTooLarge) || !strings.Contains(err.Error(), "more than 32 MiB") {
		t.Errorf("response of %d MiB: %v, want ErrTooLarge", 4*most, err)
	}
}

// TestValuesAreBounded checks that a response with many short values, which takes many times its size when decoded, is
// rejected, and that common objects are not.
func TestValuesAreBounded(t *testing.T) {
	usual := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"` + strings.Repeat("x", 8<<10) + `"},"status":{` +
		strings.Repeat(`"f":{"g":"h"},`, 200) + `"i":1}}`
	dashboard := `{"data":{"a":"` + strings.Repeat(`{\"a\\\\\":{}},`, 100_000) + `"}}`
	answers := map[string]string{
		"usual":   strings.Repeat(usual+",", 499) + usual,
		"texts":   strings.Repeat(dashboard+",", 19) + dashboard,
		"objects": strings.Repeat(`{"a":1},`, 1<<20) + `{}`,
		"values":  strings.Repeat(`0,`, 8<<20) + `0`,
		"lists":   strings.Repeat(strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+",", 1000) + `{}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"ConfigMapList","items":[%s]}`, answers[strings.Split(r.URL.Path, "/")[4]])
	}))
	defer server.Close()
	client, err := dynamic.NewForConfig(newProtectedConfig(t, server))
	if err != nil {
		t.Fatal(err)
	}
	for namespace := range answers {
		_, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if refused := errors.Is(err, guard.ErrTooLarge); refused != slices.Contains([]string{"objects", "values", "lists"}, namespace) || err != nil && !refused {
			t.Errorf("list of %s: %v", namespace, err)
		}
	}
}

// TestHeadersAreBounded checks that headers are limited, and that HTTP/2, which buffers unread data, is not used.
func TestHeadersAreBounded(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Errorf("protocol = %s, want HTTP/1", r.Proto)
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.URL.Path, "/large/") {
			for i := range 16 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 8<<10))
			}
		}
		_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"SecretList","items":[]}`)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	config := newProtectedConfig(t, server)
	config.Insecure = true
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for namespace, refused := range map[string]bool{"small": false, "large": true} {
		_, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "server response headers exceeded") {
			t.Errorf("list of %s: %v", namespace, err)
		}
	}
}

// TestFormats checks that every client requests JSON and accepts nothing else.
func TestFormats(t *testing.T) {
	contentType := "application/json"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if accept := r.Header.Get("Accept"); !strings.HasPrefix(accept, "application/json") || strings.Contains(accept, "protobuf") {
			t.Errorf("request %s accepts %s, want only JSON", r.URL, accept)
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"SecretList","items":[]}`)
	}))
	defer server.Close()
	config := newProtectedConfig(t, server)
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	whole, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	partly, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	typed, err := client.New(config, client.Options{Mapper: meta.NewDefaultRESTMapper(nil)})
	if err != nil {
		t.Fatal(err)
	}
	typed.RESTMapper().(*meta.DefaultRESTMapper).Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace) //nolint:forcetypeassert // it was given
	for name, list := range map[string]func() error{
		"dynamic":  func() error { _, err := whole.Resource(secrets).List(t.Context(), metav1.ListOptions{}); return err },
		"metadata": func() error { _, err := partly.Resource(secrets).List(t.Context(), metav1.ListOptions{}); return err },
		"typed":    func() error { return typed.List(t.Context(), &corev1.SecretList{}) },
	} {
		contentType = "application/json; charset=utf-8"
		if err := list(); err != nil {
			t.Errorf("%s list: %v", name, err)
		}
		for _, contentType = range []string{"application/vnd.kubernetes.protobuf", "application/yaml", "Application/CBOR", "application/json, application/yaml"} {
			if err := list(); !errors.Is(err, guard.ErrFormat) {
				t.Errorf("%s: response in %s = %v, want ErrFormat", name, contentType, err)
			}
		}
	}
}

// TestOtherProtocols checks that a response that switches protocols is rejected, because limits would not apply to it.
func TestOtherProtocols(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, b, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(b, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", strings.Repeat(" ", 1<<20), `{"apiVersion":"v1","kind":"SecretList","items":[]}`)
		b.Flush()
	}))
	defer server.Close()
	client, err := dynamic.NewForConfig(newProtectedConfig(t, server))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("n").List(t.Context(), metav1.ListOptions{})
	if !errors.Is(err, guard.ErrFormat) || !strings.Contains(err.Error(), "another protocol") {
		t.Error(err)
	}
}

// TestRedirects checks that a redirect of an API server is not followed, so that no credentials are sent to its
// location.
func TestRedirects(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	config := newProtectedConfig(t, server)
	config.BearerToken = "of-the-kubeconfig"
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("n").List(t.Context(), metav1.ListOptions{})
	if !errors.Is(err, guard.ErrRedirect) {
		t.Error(err)
	}
}

// TestAndPrivate checks that AllowPrivate also allows private addresses, but not addresses that must be listed
// individually.
func TestAndPrivate(t *testing.T) {
	var none *guard.Guard
	listed, err := guard.New([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for ip, want := range map[string]bool{
		"10.1.2.3": true, "172.31.0.1": true, "192.168.1.1": true, "100.64.0.1": true, "fd12::1": true, "8.8.8.8": true,
		"127.0.0.2": false, "::1": false, "0.0.0.0": false, "169.254.169.254": false, "169.254.0.1": false, "fe80::1": false, "100.100.100.200": false,
		"168.63.129.16": false, "fd00:ec2::254": false, "fd00:ec2::23": false, "fd00:c1::a9fe:a9fe": false, "fd00:42::42": false, "64:ff9b::a9fe:a9fe": false, "224.0.0.1": false, "255.255.255.255": false, "::ffff:127.0.0.2": false,
	} {
		for name, g := range map[string]*guard.Guard{"none": none, "listed": listed} {
			if err := g.AllowPrivate().Check(netip.MustParseAddr(ip)); (err == nil) != want {
				t.Errorf("%s: Check(%s) = %v", name, ip, err)
			}
		}
	}
	if none.AllowPrivate().Check(netip.MustParseAddr("127.0.0.1")) == nil || listed.AllowPrivate().Check(netip.MustParseAddr("127.0.0.1")) != nil {
		t.Error("an address of this machine must be allowed only where it is listed")
	}
	if listed.Check(netip.MustParseAddr("10.1.2.3")) == nil {
		t.Error("AndPrivate changed the original guard")
	}
}
