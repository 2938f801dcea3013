package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
	"scute.dev/kube/guard"
	"scute.dev/workflow/task"
)

// TestConnectIsBounded checks that discovery has a timeout, because it has no context.
func TestConnectIsBounded(t *testing.T) {
	cluster, err := connect(&rest.Config{Host: "https://127.0.0.1:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if cluster.Config.Timeout <= 0 {
		t.Error("requests have no timeout")
	}
}

// TestDenialOfAStartingServer checks that a denial by an API server that has just started, and denies everything, is
// not final.
func TestDenialOfAStartingServer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"configmaps \"a\" is forbidden: User \"u\" cannot get resource \"configmaps\""}`)
	}))
	defer srv.Close()
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	cluster, err := connect(&rest.Config{Host: srv.URL}, kinds)
	if err != nil {
		t.Fatal(err)
	}
	err = cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "a"}, &corev1.ConfigMap{})
	if !errors.Is(err, kube.ErrStarting) || task.IsFinal(FinalIfRefused(err)) {
		t.Errorf("Get = %v, want ErrStarting", err)
	}
}

// TestInDaemonsName checks that a task has more permissions than its ServiceAccount only on the run's own cluster, and
// never in a local run.
func TestInDaemonsName(t *testing.T) {
	own := func() (*rest.Config, error) { return &rest.Config{Host: "https://127.0.0.1:1"}, nil }
	daemons, ok := (&Clusters{Own: own}).AsDaemon(ClusterRef{})
	if !ok {
		t.Fatal("InDaemonsName on the daemon's own cluster = false, want true")
	}
	cluster, err := daemons.Open(context.Background(), &task.Call{Namespace: "a", ServiceAccount: "one"}, ClusterRef{})
	if err != nil || cluster.Config.Impersonate.UserName != "" {
		t.Errorf("Open = %v, impersonates %q", err, cluster.Config.Impersonate.UserName)
	}
	if _, ok := (&Clusters{Own: own}).AsDaemon(ClusterRef{KubeconfigSecretRef: &SecretKey{Name: "other"}}); ok {
		t.Error("InDaemonsName on another cluster = true, want false")
	}
	if _, ok := (&Clusters{Own: own, Local: true}).AsDaemon(ClusterRef{}); ok {
		t.Error("InDaemonsName in a local run = true, want false")
	}
}

// TestRunsOfANamespaceShareTheKinds checks that the kinds of the own cluster are cached once for each namespace, and
// not for other clusters.
func TestRunsOfANamespaceShareTheKinds(t *testing.T) {
	clusters := &Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: "https://127.0.0.1:1"}, nil }}
	open := func(namespace, account string) *Cluster {
		t.Helper()
		cluster, err := clusters.Open(context.Background(), &task.Call{Namespace: namespace, ServiceAccount: account}, ClusterRef{})
		if err != nil {
			t.Fatal(err)
		}
		return cluster
	}
	one, two, other := open("a", "one"), open("a", "two"), open("b", "one")
	if one.Client.RESTMapper() != two.Client.RESTMapper() {
		t.Error("two runs of a namespace do not share the kinds")
	}
	if one.Client.RESTMapper() == other.Client.RESTMapper() {
		t.Error("runs of two namespaces share the kinds")
	}
	if got := two.Config.Impersonate.UserName; got != "system:serviceaccount:a:two" {
		t.Errorf("the second run impersonates %s", got)
	}
	for i := range 100 {
		open(string(rune('A'+i)), "one")
	}
	if n := clusters.kinds.Len(); n > cachedKinds {
		t.Errorf("the kinds of %d namespaces are cached", n)
	}
}

// TestKubeconfigsOfSecretsAreGuarded checks that in the daemon a kubeconfig of a Secret cannot reach addresses that are
// denied to tenants.
func TestKubeconfigsOfSecretsAreGuarded(t *testing.T) {
	const kubeconfig = `{"clusters": [{"name": "c", "cluster": {"server": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}`
	var reached bool
	tenants := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached = true
		http.NotFound(w, r)
	}))
	defer tenants.Close()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Data: map[string][]byte{"value": fmt.Appendf(nil, kubeconfig, tenants.URL)},
		})
	}))
	defer own.Close()
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	allowed, err := guard.New([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, allowed := range map[string]*guard.Guard{"denied": nil, "allowed": allowed} {
		t.Run(name, func(t *testing.T) {
			reached = false
			clusters := &Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: own.URL}, nil }, Guard: allowed}
			clusters.kindsOnce.Do(func() { clusters.kinds = lru.New(1) })
			clusters.kinds.Add("a", kinds)
			cluster, err := clusters.Open(t.Context(), &task.Call{Namespace: "a", ServiceAccount: "one"},
				ClusterRef{KubeconfigSecretRef: &SecretKey{Name: "tenants"}, AllowInsecure: true})
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = cluster.Mapping(t.Context(), corev1.SchemeGroupVersion.WithKind("Secret"))
			if denied := allowed == nil; errors.Is(err, guard.ErrDenied) != denied || reached == denied {
				t.Errorf("server reached %t, error %v", reached, err)
			}
		})
	}
}
