package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"scute.dev/internal/fair"
	"scute.dev/kube"
	"scute.dev/workflow/task"
)

// TestPagesTakeTurns checks that the pages of large lists in memory are limited, however many tasks of a namespace
// list, and that other namespaces do not wait for them.
func TestPagesTakeTurns(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind": "APIVersions", "versions": ["v1"]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [
				{"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap", "verbs": ["list"]}]}`)
		default:
			next := ""
			if r.FormValue("continue") == "" {
				next = "more"
			}
			fmt.Fprintf(w, `{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"continue": %q}, "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]}`, next)
		}
	}))
	defer server.Close()
	const limit, tasks = 2, 20
	clusters := &Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Pages: fair.NewSlots(limit)}
	selector := &ObjectSelector{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: "a=b"}
	each := func(namespace string, fn func()) {
		c := &task.Call{Namespace: namespace, ServiceAccount: "runs"}
		cluster, err := clusters.Open(t.Context(), c, ClusterRef{})
		if err != nil {
			t.Error(err)
			return
		}
		found := 0
		err = cluster.Each(t.Context(), selector, namespace, func(context.Context, *unstructured.Unstructured) error {
			found++
			fn()
			return nil
		})
		if found != 2 || err != nil {
			t.Errorf("Each returned %d objects, error %v", found, err)
		}
	}
	held, free := make(chan struct{}, tasks), make(chan struct{})
	var all sync.WaitGroup
	for range tasks {
		all.Go(func() {
			each("noisy", func() {
				held <- struct{}{}
				<-free
			})
		})
	}
	for range limit {
		<-held
	}
	each("quiet", func() {})
	select {
	case <-held:
		t.Errorf("more than %d pages of one namespace are in memory", limit)
	case <-time.After(100 * time.Millisecond):
	}
	close(free)
	for range 2*tasks - limit {
		<-held
	}
	all.Wait()
}

// TestAPageWaitsForItsPlace checks that a list waits for its turn longer than the timeout of a request.
func TestAPageWaitsForItsPlace(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	selector := &ObjectSelector{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: "a=b"}
	synctest.Test(t, func(t *testing.T) {
		cluster := &Cluster{
			Client: fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).Build(), Kube: &kube.Cluster{Name: "cluster"},
			pages: fair.NewSlots(1), namespace: "quiet",
		}
		for _, other := range []string{"one", "another"} {
			place := cluster.pages.Slot(other)
			if err := place.Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(time.Hour, place.Release)
		}
		begun, nothing := time.Now(), func(context.Context, *unstructured.Unstructured) error { return nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := cluster.Each(ctx, selector, "quiet", nothing); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Minute {
			t.Errorf("after %s: %v, want DeadlineExceeded", time.Since(begun), err)
		}
		if err := cluster.Each(t.Context(), selector, "quiet", nothing); err != nil || time.Since(begun) != time.Hour {
			t.Errorf("Each returned after %s: %v", time.Since(begun), err)
		}
	})
}

// TestAPageIsGivenBackInTime checks that a slow callback does not keep a page from others: the remaining objects of the
// page are read again individually, in their current state.
func TestAPageIsGivenBackInTime(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	selector := &ObjectSelector{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: "a=b"}
	synctest.Test(t, func(t *testing.T) {
		var objects []client.Object
		for _, name := range []string{"1-quick", "2-slow", "3-slow", "4-gone", "5-other", "6-slow"} {
			objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "slow", Name: name, Labels: map[string]string{"a": "b"}}})
		}
		single := 0
		api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).Build(), interceptor.Funcs{
			List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				var o client.ListOptions
				o.ApplyOptions(opts)
				name, one := "", o.FieldSelector != nil
				if one { // which the fake does not support
					single++
					name, _ = o.FieldSelector.RequiresExactMatch("metadata.name")
					o.FieldSelector = nil
				}
				err := api.List(ctx, list, &o)
				if all, ok := list.(*unstructured.UnstructuredList); ok && one {
					all.Items = slices.DeleteFunc(all.Items, func(u unstructured.Unstructured) bool { return u.GetName() != name })
				}
				return err
			},
		})
		pages := fair.NewSlots(1)
		of := func(namespace string) *Cluster {
			return &Cluster{Client: api, Kube: &kube.Cluster{Name: "cluster"}, pages: pages, namespace: namespace}
		}
		begun, slow := time.Now(), make(chan error, 1)
		var looked []string
		go func() {
			slow <- of("slow").Each(t.Context(), selector, "slow", func(ctx context.Context, u *unstructured.Unstructured) error {
				if u.GetName() != "1-quick" {
					select {
					case <-time.After(time.Hour):
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				looked = append(looked, u.GetName())
				return nil
			})
		}()
		synctest.Wait()
		if err := api.Delete(t.Context(), objects[3]); err != nil {
			t.Fatal(err)
		}
		objects[4].SetLabels(nil)
		if err := api.Update(t.Context(), objects[4]); err != nil {
			t.Fatal(err)
		}
		err := of("slow").Each(t.Context(), selector, "quiet", func(context.Context, *unstructured.Unstructured) error { return nil })
		if took := time.Since(begun); err != nil || took != pageTimeout {
			t.Errorf("another page was in memory after %s: %v", took, err)
		}
		if err := <-slow; err != nil || time.Since(begun) != 3*time.Hour+pageTimeout {
			t.Errorf("Each returned after %s: %v", time.Since(begun), err)
		}
		if diff := cmp.Diff([]string{"1-quick", "2-slow", "3-slow", "6-slow"}, looked); diff != "" || single != 5 {
			t.Errorf("%d objects were read again; names (-want +got):\n%s", single, diff)
		}
		failed := errors.New("it failed")
		err = of("slow").Each(t.Context(), selector, "slow", func(context.Context, *unstructured.Unstructured) error { return failed })
		if !errors.Is(err, failed) || single != 5 {
			t.Errorf("Each = %v, want the error of the callback", err)
		}
		place := pages.Slot("slow")
		defer place.Release()
		place.Request()
		if !place.Held() {
			t.Error("the page was not released")
		}
	})
}
