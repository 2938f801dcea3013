package kinds

import (
	"context"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/pause"
)

// TestPauseOfACorrectedTask corrects the inputs of a failed task so that they select no Cluster any more. The undo
// resumes what an earlier attempt paused.
func TestPauseOfACorrectedTask(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "corrected")
	apps := kustomization(ctx, t, ns)
	cluster := object(ns, "cluster.x-k8s.io/v1beta2", "Cluster", "prod", map[string]any{"topology": map[string]any{"classRef": map[string]any{"name": "none"}, "version": "v1.30.0"}})
	harness.Must(t, admin().Create(ctx, cluster))
	held := func(u *unstructured.Unstructured, field string) (paused, marked bool) {
		now := get(ctx, t, u.GetAPIVersion(), u.GetKind(), ns, u.GetName())
		paused, _, _ = unstructured.NestedBool(now.Object, "spec", field)
		return paused, len(now.GetAnnotations()) > 0
	}

	s := &step{t: t, kind: &pause.Kind{Clusters: clusters(true)}, namespace: ns, name: "pause", with: `{"clusters": ["prod"]}`}
	harness.Must(t, s.run(ctx))
	if paused, marked := held(cluster, "paused"); !paused || !marked {
		t.Fatalf("Cluster: paused %t, annotated %t; want both", paused, marked)
	}
	s.output, s.with = nil, `{"kustomizations": [{"name": "apps"}]}`
	harness.Must(t, s.run(ctx))
	if paused, marked := held(apps, "suspend"); !paused || !marked {
		t.Fatalf("Kustomization: suspended %t, annotated %t; want both", paused, marked)
	}
	harness.Must(t, s.takeBack(ctx))
	for field, u := range map[string]*unstructured.Unstructured{"paused": cluster, "suspend": apps} {
		if paused, marked := held(u, field); paused || marked {
			t.Errorf("%s %s after the undo: held %t, annotated %t; want neither", u.GetKind(), u.GetName(), paused, marked)
		}
	}
}

// TestPauseOfAnotherIsNotLifted checks a process that stalls between its read and its write. Meanwhile the pause was
// undone, and another run suspended the Kustomization. It stays suspended.
func TestPauseOfAnotherIsNotLifted(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "stalled")
	apps := kustomization(ctx, t, ns)
	stalled := false
	kind := &pause.Kind{Clusters: &access.Clusters{Local: true, Own: func() (*rest.Config, error) {
		config := rest.CopyConfig(bed.Side("one").Config())
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if stalled && r.Method == http.MethodPatch {
					stalled = false
					taken := `{"metadata":{"annotations":{"scute.dev/pause":"another"}},"spec":{"suspend":true}}`
					harness.Must(t, admin().Patch(ctx, apps.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(taken))))
				}
				return next.RoundTrip(r)
			})
		})
		return config, nil
	}}}
	s := &step{t: t, kind: kind, namespace: ns, name: "pause", with: `{"kustomizations": [{"name": "apps"}]}`}
	harness.Must(t, s.run(ctx))
	stalled = true
	harness.Must(t, s.takeBack(ctx))
	now := get(ctx, t, apps.GetAPIVersion(), apps.GetKind(), ns, apps.GetName())
	if suspended, _, _ := unstructured.NestedBool(now.Object, "spec", "suspend"); stalled || !suspended || now.GetAnnotations()["scute.dev/pause"] != "another" {
		t.Errorf("suspended %t, annotations %v; want the other run's pause", suspended, now.GetAnnotations())
	}
}

// TestSuspendedByTheUserMeanwhile checks a Kustomization that a user suspends with server-side apply while a task holds
// it. It stays suspended when the pause is undone. One that only the task suspended does not.
func TestSuspendedByTheUserMeanwhile(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "meanwhile")
	theirs := kustomization(ctx, t, ns)
	ours := object(ns, theirs.GetAPIVersion(), theirs.GetKind(), "ours", map[string]any{"interval": "1h"})
	harness.Must(t, admin().Create(ctx, ours))
	s := &step{t: t, kind: &pause.Kind{Clusters: clusters(true)}, namespace: ns, name: "pause", with: `{"kustomizations": [{"name": "apps"}, {"name": "ours"}]}`}
	harness.Must(t, s.run(ctx))
	suspends := object(ns, theirs.GetAPIVersion(), theirs.GetKind(), theirs.GetName(), map[string]any{"suspend": true})
	harness.Must(t, admin().Apply(ctx, client.ApplyConfigurationFromUnstructured(suspends), client.FieldOwner("alice")))
	harness.Must(t, s.takeBack(ctx))
	for u, want := range map[*unstructured.Unstructured]bool{theirs: true, ours: false} {
		now := get(ctx, t, u.GetAPIVersion(), u.GetKind(), ns, u.GetName())
		if suspended, _, _ := unstructured.NestedBool(now.Object, "spec", "suspend"); suspended != want || len(now.GetAnnotations()) > 0 {
			t.Errorf("%s: suspended %t, want %t; annotations %v", u.GetName(), suspended, want, now.GetAnnotations())
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// kustomization creates a Kustomization, and its definition if necessary.
func kustomization(ctx context.Context, t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	harness.Must(t, applyStep(t, namespace, `{"manifests": [{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "kustomizations.kustomize.toolkit.fluxcd.io"},
		"spec": {"group": "kustomize.toolkit.fluxcd.io", "scope": "Namespaced", "names": {"kind": "Kustomization", "plural": "kustomizations", "singular": "kustomization", "listKind": "KustomizationList"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}]}`).run(ctx))
	apps := object(namespace, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "apps", map[string]any{"interval": "1h"})
	eventually(ctx, t, "Kustomizations are served", func() bool { return admin().Create(ctx, apps) == nil })
	return apps
}

func object(namespace, apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}
