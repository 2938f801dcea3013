package kube_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"scute.dev/kube"
)

const (
	authorizerDenial = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"namespaces \"a\" is forbidden: User \"u\" cannot get resource \"namespaces\" in API group \"\""}`
	webhookDenial    = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"admission webhook denied the request: not today"}`
	okResponse       = `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a"}}`
)

// TestDeniedByAStartingServer checks that a denial is final only once the API server is ready.
func TestDeniedByAStartingServer(t *testing.T) {
	for name, c := range map[string]struct {
		denial string
		readyz []int // responses in order; the last one is repeated
		grants int   // number of denials before it grants; -1 is never
		fails  bool
		asked  []string
	}{
		"it starts":               {authorizerDenial, []int{500, 500, 200}, 2, false, []string{"get", "readyz", "get", "readyz", "get"}},
		"it has become ready":     {authorizerDenial, []int{200}, 1, false, []string{"get", "readyz", "get"}},
		"it is ready":             {authorizerDenial, []int{200}, -1, true, []string{"get", "readyz", "get"}},
		"it reads its roles":      {authorizerDenial, []int{403, 403, 200}, 1, false, []string{"get", "readyz", "readyz", "readyz", "get"}},
		"it does not tell":        {authorizerDenial, []int{404}, -1, true, []string{"get", "readyz"}},
		"no denial of authorizer": {webhookDenial, []int{500}, -1, true, []string{"get"}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			denials := 0
			answer := func(w http.ResponseWriter, code int, body string) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				fmt.Fprint(w, body)
			}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer secret" {
					t.Errorf("%s without credentials", r.URL)
				}
				switch {
				case r.URL.Path == "/prefix/readyz":
					answer(w, c.readyz[min(count(asked, "readyz"), len(c.readyz)-1)], "")
					asked = append(asked, "readyz")
				case denials == c.grants:
					asked = append(asked, "get")
					answer(w, http.StatusOK, okResponse)
				default:
					denials++
					asked = append(asked, "get")
					answer(w, http.StatusForbidden, c.denial)
				}
			}))
			defer srv.Close()
			cluster, err := kube.Connect("target", &rest.Config{Host: srv.URL + "/prefix", BearerToken: "secret"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = cluster.Get(t.Context(), kube.NamespaceType(), "", "a")
			if c.fails != (err != nil) || c.fails && !apierrors.IsForbidden(err) {
				t.Errorf("Get = %v", err)
			}
			if !slices.Equal(asked, c.asked) {
				t.Errorf("requests = %v, want %v", asked, c.asked)
			}
		})
	}
}

// TestDenialOfAServerThatDoesNotTell checks that a denial is final if readiness may not be requested.
func TestDenialOfAServerThatDoesNotTell(t *testing.T) {
	gets := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			gets++
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, authorizerDenial)
	}))
	defer srv.Close()
	cluster, err := kube.Connect("target", &rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = cluster.Get(t.Context(), kube.NamespaceType(), "", "a"); !kube.IsAuthorizationDenied(err) || gets != 1 {
		t.Errorf("%d requests, error %v, want one denied request", gets, err)
	}
}

func count(list []string, of string) (n int) {
	for _, one := range list {
		if one == of {
			n++
		}
	}
	return n
}

// TestDeniedWriteIsSentWhole checks that a repeated request has its body.
func TestDeniedWriteIsSentWhole(t *testing.T) {
	var bodies [][]byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies = append(bodies, body)
		w.Header().Set("Content-Type", "application/json")
		if len(bodies) == 1 {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, authorizerDenial)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, okResponse)
	}))
	defer srv.Close()
	cluster, err := kube.Connect("target", &rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "a"}}}
	if _, err := cluster.Resource(kube.NamespaceType(), "").Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(bodies) != 2 || len(bodies[0]) == 0 || !bytes.Equal(bodies[0], bodies[1]) {
		t.Errorf("bodies = %q, want two equal ones", bodies)
	}
}

// TestKindsOfAStartingServer checks that Movable waits until a starting API server serves the kinds of its definitions.
func TestKindsOfAStartingServer(t *testing.T) {
	starting := 3 // responses before it is ready
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/readyz":
			if starting--; starting >= 0 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		case "/apis/apiextensions.k8s.io/v1/customresourcedefinitions":
			fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{"metadata":{"name":"clusters.cluster.x-k8s.io","labels":{"clusterctl.cluster.x-k8s.io":""}}}]}`)
		case "/apis":
			if starting >= 0 {
				fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
				return
			}
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"cluster.x-k8s.io","versions":[{"groupVersion":"cluster.x-k8s.io/v1beta2","version":"v1beta2"}],"preferredVersion":{"groupVersion":"cluster.x-k8s.io/v1beta2","version":"v1beta2"}}]}`)
		case "/apis/cluster.x-k8s.io/v1beta2":
			fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"cluster.x-k8s.io/v1beta2","resources":[{"name":"clusters","kind":"Cluster","namespaced":true}]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer srv.Close()
	cluster, err := kube.Connect("target", &rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	movable, unserved, err := cluster.MovableTypes(t.Context())
	if err != nil || len(unserved) > 0 || !slices.ContainsFunc(movable, func(t kube.Type) bool { return t.Kind == "Cluster" }) {
		t.Errorf("movable %v, unserved %v, error %v", movable, unserved, err)
	}
}
