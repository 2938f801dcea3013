package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// guard watches every object of some namespaces on both management clusters. It reports objects that exist on neither
// side, and Clusters that are not paused on either side. After a suspicious event it reads both API servers again, so
// that late watch events cause no false reports.
type guard struct {
	mu    sync.Mutex
	known map[string]bool // "Namespace Kind name" of each object at the beginning
	wrong []string
}

// watched is one kind on one side, with the same kind on the other side.
type watched struct {
	kind, side  string
	here, there dynamic.NamespaceableResourceInterface
}

func (s *suite) guard(ctx context.Context, t *testing.T, namespaces ...string) *guard {
	t.Helper()
	g := &guard{known: make(map[string]bool)}
	for _, ns := range namespaces {
		for _, side := range []*scuted.Installation{s.blue, s.green} {
			for name := range objects(ctx, t, side, ns) {
				g.known[ns+" "+name] = true
			}
		}
	}
	client := func(in *scuted.Installation) dynamic.Interface {
		c, err := dynamic.NewForConfig(in.Side.Config())
		harness.Must(t, err)
		return c
	}
	blue, green := client(s.blue), client(s.green)
	background, stop := context.WithCancel(context.Background())
	var watches sync.WaitGroup
	for resource, kind := range kinds(ctx, t, s.blue) {
		for _, w := range []watched{{kind, "blue", blue.Resource(resource), green.Resource(resource)}, {kind, "green", green.Resource(resource), blue.Resource(resource)}} {
			watches.Go(func() { g.watch(background, w) })
		}
	}
	t.Cleanup(func() { stop(); watches.Wait() })
	return g
}

// watch follows one kind until ctx ends, also across restarts of an API server.
func (g *guard) watch(ctx context.Context, w watched) {
	for ctx.Err() == nil {
		events, err := w.here.Watch(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for e := range events.ResultChan() {
			if u, ok := e.Object.(*unstructured.Unstructured); ok && g.knows(u.GetNamespace()+" "+w.kind+" "+u.GetName()) {
				g.look(ctx, w, e.Type, u)
			}
		}
	}
}

func (g *guard) look(ctx context.Context, w watched, event watch.EventType, u *unstructured.Unstructured) {
	switch {
	case event == watch.Deleted:
		there, missing := read(ctx, w.there, u)
		if _, here := read(ctx, w.here, u); there == nil && missing && here {
			g.found("%s %s/%s was deleted on %s, and is on neither side", w.kind, u.GetNamespace(), u.GetName(), w.side)
		}
	case event != watch.Deleted && w.kind == "Cluster" && active(u):
		there, _ := read(ctx, w.there, u)
		if !active(there) {
			return
		}
		here, _ := read(ctx, w.here, u)
		still, _ := read(ctx, w.there, u)
		if active(here) && active(still) && still.GetResourceVersion() == there.GetResourceVersion() {
			g.found("Cluster %s/%s is active on both sides", u.GetNamespace(), u.GetName())
		}
	}
}

// read returns the object with that name, or whether it is missing. On other errors it returns neither.
func read(ctx context.Context, in dynamic.NamespaceableResourceInterface, u *unstructured.Unstructured) (found *unstructured.Unstructured, missing bool) {
	found, err := in.Namespace(u.GetNamespace()).Get(ctx, u.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, apierrors.IsNotFound(err)
	}
	return found, false
}

func active(cluster *unstructured.Unstructured) bool {
	if cluster == nil {
		return false
	}
	paused, _, _ := unstructured.NestedBool(cluster.Object, "spec", "paused")
	return !paused
}

func (g *guard) found(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wrong = append(g.wrong, fmt.Sprintf(format, args...))
}

// spare removes a namespace from the guard, for a test that deletes objects there.
func (g *guard) spare(namespace string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.known, func(name string, _ bool) bool { return strings.HasPrefix(name, namespace+" ") })
}

// knows reports whether an object existed at the beginning.
func (g *guard) knows(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known[name]
}

// clean checks that the guard reported nothing.
func (g *guard) clean(t *testing.T) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.wrong) > 0 {
		t.Errorf("the guard reported:\n%s", strings.Join(g.wrong, "\n"))
	}
}
