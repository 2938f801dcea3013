package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// respond writes a Status of an API server.
func respond(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "message": %q, "code": %d}`, reason, message, code)
}

// TestDeletionThatAWebhookDenies checks that a deletion is tried again after a webhook has denied it, because the
// webhook of Cluster API may not know yet that the last Cluster of a class is gone. A missing permission is final.
func TestDeletionThatAWebhookDenies(t *testing.T) {
	for message, final := range map[string]bool{
		`admission webhook "validation.clusterclass.cluster.x-k8s.io" denied the request: it is used by 1 Cluster(s)`: false,
		`secrets "first" is forbidden: User "runs" cannot delete resource "secrets"`:                                  true,
	} {
		m := &manager{}
		attempts, gone := make(map[string]int), make(map[string]bool)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
			switch {
			case !strings.Contains(r.URL.Path, "/secrets/"):
				m.ServeHTTP(w, r)
			case gone[name]:
				respond(w, http.StatusNotFound, "NotFound", "")
			case r.Method == http.MethodDelete && (final || attempts[name] == 0):
				attempts[name]++
				respond(w, http.StatusForbidden, "Forbidden", message)
			default:
				gone[name] = r.Method == http.MethodDelete
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "fleet", "name": %[1]q, "uid": %[1]q}}`, name)
			}
		}))
		defer server.Close()
		clusters := &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Local: true}
		c := NewContext(t.Context(), &task.Call{
			Run: "fleet/delete/1", Task: "delete-cluster", Record: func(context.Context, json.RawMessage, bool) error { return nil },
		}, clusters)
		err := Target{Context: &c, Cluster: Cluster{Namespace: "fleet", Name: "prod"}}.Delete(cleaner{}, func() error { return nil })
		if final != task.IsFinal(err) || !final && (err != nil || !gone["first"] || !gone["second"]) {
			t.Errorf("%s: Delete = %v, deleted %v", message, err, gone)
		}
	}
}

// TestDeletionWithoutPermission checks that a Cluster that the run may not delete ends the attempt.
func TestDeletionWithoutPermission(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			respond(w, http.StatusForbidden, "Forbidden", `clusters "prod" is forbidden: User "runs" cannot delete resource "clusters"`)
			return
		}
		new(manager).ServeHTTP(w, r)
	}))
	defer server.Close()
	clusters := &access.Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Local: true}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	c := NewContext(ctx, &task.Call{
		Run: "fleet/delete/1", Task: "delete-cluster", Record: func(context.Context, json.RawMessage, bool) error { return nil },
	}, clusters)
	err := Target{Context: &c, Cluster: Cluster{Namespace: "fleet", Name: "prod"}}.Delete(nil, func() error { return nil })
	if !task.IsFinal(err) || !strings.Contains(err.Error(), "grant this permission") {
		t.Errorf("Delete = %v, want a final error", err)
	}
}
