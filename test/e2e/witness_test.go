package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"scute.dev/test/cloud"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// witness compares snapshots of the cloud. A correct move creates, deletes and replaces nothing there.
type witness struct {
	cloud  *cloud.Cloud
	before cloud.Snapshot
	mark   cloud.Mark
}

func (s *suite) witness(ctx context.Context, t *testing.T) *witness {
	t.Helper()
	before, err := s.bed.Cloud().Snapshot(ctx)
	harness.Must(t, err)
	return &witness{cloud: s.bed.Cloud(), before: before, mark: s.bed.Cloud().Mark()}
}

func (w *witness) clean(ctx context.Context, t *testing.T) {
	t.Helper()
	after, err := w.cloud.Snapshot(ctx)
	harness.Must(t, err)
	for _, line := range w.before.Diff(after) {
		t.Errorf("the cloud changed: %s", line)
	}
	journal, err := w.cloud.Since(w.mark)
	harness.Must(t, err)
	if bad := journal.Replacements(); len(bad) > 0 {
		t.Errorf("machines were replaced in the cloud:\n%s", bad)
	}
}

// pauses watches the Clusters of a side and reports each one that is unpaused, however briefly, also across restarts of
// the API server.
type pauses struct {
	mu       sync.Mutex
	unpaused []string // Clusters that had been paused
	done     chan struct{}
	stop     context.CancelFunc
}

func watchPauses(t *testing.T, side *scuted.Installation, namespace string) *pauses {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &pauses{done: make(chan struct{}), stop: cancel}
	client, err := dynamic.NewForConfig(side.Side.Config())
	harness.Must(t, err)
	resource := client.Resource(clusters()).Namespace(namespace)
	list, err := resource.List(ctx, metav1.ListOptions{})
	harness.Must(t, err)
	w, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, o)
		},
	})
	harness.Must(t, err)
	go func() {
		defer close(p.done)
		paused := make(map[string]bool)
		for event := range w.ResultChan() {
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Deleted {
				continue
			}
			now, _, _ := unstructured.NestedBool(u.Object, "spec", "paused")
			key := u.GetName() + " " + string(u.GetUID())
			if paused[key] && !now {
				p.mu.Lock()
				p.unpaused = append(p.unpaused, fmt.Sprintf("%s %s at resource version %s", time.Now().UTC().Format("15:04:05.000"), key, u.GetResourceVersion()))
				p.mu.Unlock()
			}
			paused[key] = now
		}
	}()
	t.Cleanup(func() { cancel(); <-p.done })
	return p
}

func (p *pauses) none(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.unpaused) > 0 {
		t.Errorf("the source was unpaused:\n%s", strings.Join(p.unpaused, "\n"))
	}
}

func clusters() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "clusters"}
}

// kinds returns the kinds of Cluster API, and Secret, by resource.
func kinds(ctx context.Context, t *testing.T, in *scuted.Installation) map[schema.GroupVersionResource]string {
	t.Helper()
	crds := &unstructured.UnstructuredList{}
	crds.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	harness.Must(t, in.Side.Client().List(ctx, crds))
	found := map[schema.GroupVersionResource]string{{Version: "v1", Resource: "secrets"}: "Secret"}
	for i := range crds.Items {
		group, _, _ := unstructured.NestedString(crds.Items[i].Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crds.Items[i].Object, "spec", "names", "kind")
		plural, _, _ := unstructured.NestedString(crds.Items[i].Object, "spec", "names", "plural")
		if strings.HasSuffix(group, "cluster.x-k8s.io") {
			found[schema.GroupVersionResource{Group: group, Version: storage(&crds.Items[i]), Resource: plural}] = kind
		}
	}
	return found
}

// objects returns all objects of Cluster API in a namespace, and its Secrets, by "Kind name".
func objects(ctx context.Context, t *testing.T, in *scuted.Installation, namespace string) map[string]*unstructured.Unstructured {
	t.Helper()
	found := make(map[string]*unstructured.Unstructured)
	for resource, kind := range kinds(ctx, t, in) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
		harness.Must(t, in.Side.Client().List(ctx, list, inNamespace(namespace)))
		for i := range list.Items {
			u := &list.Items[i]
			if _, ours := u.GetLabels()["cluster.x-k8s.io/cluster-name"]; kind == "Secret" && !ours {
				continue
			}
			found[kind+" "+u.GetName()] = u
		}
	}
	return found
}

func storage(crd *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["storage"] == true {
			name, _ := v["name"].(string)
			return name
		}
	}
	return ""
}

// untouched checks that no object has an annotation of scute.
func untouched(t *testing.T, objects map[string]*unstructured.Unstructured) {
	t.Helper()
	for name, u := range objects {
		for key := range u.GetAnnotations() {
			if strings.HasPrefix(key, "scute.dev/") || strings.HasPrefix(key, "clusterctl.cluster.x-k8s.io/delete-for-move") {
				t.Errorf("%s still has annotation %s", name, key)
			}
		}
	}
}
