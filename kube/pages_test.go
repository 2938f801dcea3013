package kube_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"scute.dev/kube"
	"scute.dev/kube/guard"
)

// TestLargePages checks that List uses smaller pages for large objects only, returns each object once and in order, and
// accepts an object that is larger than a page.
func TestLargePages(t *testing.T) {
	large, many := strings.Repeat("x", 1<<20), strings.Repeat(`"f":{},`, 150_000)
	object := func(i int) string {
		content := ""
		switch {
		case i < 40:
			content = large
		case i == 50:
			content = strings.Repeat(large, 9)
		case i == 60:
			return fmt.Sprintf(`{"metadata":{"name":"c%d","more":{%s"g":{}}}}`, i, many)
		}
		return fmt.Sprintf(`{"metadata":{"name":"c%d"},"data":{"a":%q}}`, i, content)
	}
	const all = 3000
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		to, next := min(from+limit, all), ""
		if to < all {
			next = strconv.Itoa(to)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"continue":%q},"items":[`, next)
		for i := from; i < to; i++ {
			if i > from {
				_, _ = fmt.Fprint(w, ",")
			}
			if _, err := fmt.Fprint(w, object(i)); err != nil {
				return
			}
		}
		_, _ = fmt.Fprint(w, "]}")
	}))
	defer server.Close()
	cluster, err := kube.Connect("source", &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	err = cluster.List(t.Context(), kube.Type{Kind: "ConfigMap", Plural: "configmaps", Versions: []string{"v1"}, Namespaced: true}, "fleet", func(u *unstructured.Unstructured) error {
		if want := fmt.Sprintf("c%d", read); u.GetName() != want {
			t.Fatalf("got object %s, want %s", u.GetName(), want)
		}
		read++
		return nil
	})
	if err != nil || read != all {
		t.Errorf("read %d of %d objects, error %v", read, all, err)
	}
	if asked > 50 {
		t.Errorf("%d pages were requested, want at most 50", asked)
	}
}

// TestEndlessPages checks that List stops if an API server always announces another page.
func TestEndlessPages(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"continue":"more"},"items":[]}`)
	}))
	defer server.Close()
	cluster, err := kube.Connect("target", &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	err = cluster.List(t.Context(), kube.NamespaceType(), "", func(*unstructured.Unstructured) error { return nil })
	if !errors.Is(err, guard.ErrTooLarge) || !strings.HasPrefix(err.Error(), "target: list namespaces: ") || asked != 2000 {
		t.Errorf("after %d pages: %v, want ErrTooLarge", asked, err)
	}
}

// TestPagesWithoutRoom checks that a page without room is requested with fewer objects, down to one.
func TestPagesWithoutRoom(t *testing.T) {
	var limits []int64
	err := kube.EachPage("list", func(o metav1.ListOptions) (string, error) {
		limits = append(limits, o.Limit)
		return "", fmt.Errorf("reading: %w", guard.ErrBusy)
	})
	if !errors.Is(err, guard.ErrBusy) || !slices.Equal(limits, []int64{500, 50, 5, 1}) {
		t.Errorf("Pages = %v with limits %v", err, limits)
	}
}
