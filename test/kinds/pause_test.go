package kinds

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/test/harness"
	"scute.dev/workflow/tasks/pause"
)

// TestPauseOfACorrectedTask: an operator has corrected the inputs of a task that failed, and they select no Cluster any more. What an
// earlier attempt has paused is given back with the rest.
func TestPauseOfACorrectedTask(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "corrected")
	harness.Must(t, applyStep(t, ns, `{"manifests": [{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "kustomizations.kustomize.toolkit.fluxcd.io"},
		"spec": {"group": "kustomize.toolkit.fluxcd.io", "scope": "Namespaced", "names": {"kind": "Kustomization", "plural": "kustomizations", "singular": "kustomization", "listKind": "KustomizationList"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}]}`).run(ctx))
	apps := object(ns, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "apps", map[string]any{"interval": "1h"})
	eventually(ctx, t, "Kustomizations are served", func() bool { return admin().Create(ctx, apps) == nil })
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
		t.Fatalf("the Cluster is paused: %t, marked: %t", paused, marked)
	}
	s.output, s.with = nil, `{"kustomizations": [{"name": "apps"}]}`
	harness.Must(t, s.run(ctx))
	if paused, marked := held(apps, "suspend"); !paused || !marked {
		t.Fatalf("the Kustomization is suspended: %t, marked: %t", paused, marked)
	}
	harness.Must(t, s.takeBack(ctx))
	for field, u := range map[string]*unstructured.Unstructured{"paused": cluster, "suspend": apps} {
		if paused, marked := held(u, field); paused || marked {
			t.Errorf("%s %s is still held: %t, marked: %t", u.GetKind(), u.GetName(), paused, marked)
		}
	}
}

func object(namespace, apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}
