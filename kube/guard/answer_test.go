package guard_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"scute.dev/kube/guard"
)

// TestAnswersAreBounded: an API server that answers without end, or with little that becomes much, does not fill the memory.
func TestAnswersAreBounded(t *testing.T) {
	const most = 64 // MiB, of the answer as it is read
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
	g, err := guard.New([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: server.URL}
	g.Protect(config)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list := func(namespace string) error {
		_, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := list("small"); err != nil {
		t.Errorf("an answer of 1 MiB: %v", err)
	}
	if err := list("large"); !errors.Is(err, guard.ErrTooLarge) || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("an answer of %d MiB: %v", 4*most, err)
	}
}
