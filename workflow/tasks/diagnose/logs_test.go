package diagnose

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// TestLogsAreBounded checks that the logs in memory are limited: an API server may return more than requested, and many
// containers may have more logs than the bundle has room for.
func TestLogsAreBounded(t *testing.T) {
	asked, line := 0, strings.Repeat("no such file\n", 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		for range 200 { // 2.6 MB
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	clientset, err := corev1client.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	e := &evidence{}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "p"}}
	e.collectLog(t.Context(), clientset, pod, "c", false)
	if len(e.logs) != 1 || len(e.logs[0].data) > int(diagnoseLogBytes) || len(e.errors) > 0 {
		t.Fatalf("%d logs, the first with %d bytes, errors %v", len(e.logs), len(e.logs[0].data), e.errors)
	}
	e.bufferedBytes = diagnoseBufferBytes
	for range 3 {
		e.collectLog(t.Context(), clientset, pod, "c", false)
	}
	if asked != 2 || len(e.logs) != 2 || e.omitted != 2 {
		t.Errorf("%d requests, %d logs, %d omitted", asked, len(e.logs), e.omitted)
	}
}

// TestLogsBesideManyObjects checks that omitted objects use no room of the logs of pods, which are read last.
func TestLogsBesideManyObjects(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "no such file\n") }))
	defer server.Close()
	clientset, err := corev1client.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	e := &evidence{}
	for i := range diagnoseFiles + 60 {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": "Machine"}}
		if i >= diagnoseFiles {
			u.Object["spec"] = strings.Repeat("x", 1<<20)
		}
		e.addObject(u)
	}
	e.collectLog(t.Context(), clientset, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "p"}}, "c", false)
	if len(e.observed) != diagnoseFiles || e.omitted != 60 || len(e.logs) != 1 {
		t.Errorf("%d objects, %d logs, %d omitted", len(e.observed), len(e.logs), e.omitted)
	}
}
