package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// cleanup runs f after a test, in a separate context.
func cleanup(t *testing.T, f func(ctx context.Context) error) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := f(ctx); err != nil {
			t.Error(err)
		}
	})
}

func clusterObject(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(clusters().GroupVersion().WithKind("Cluster"))
	u.SetNamespace(refusalsNS)
	u.SetName(name)
	return u
}

// halfMade creates a Cluster that is paused, so that it never becomes ready.
func halfMade(ctx context.Context, t *testing.T, on *scuted.Installation, name string, finalizers ...string) {
	t.Helper()
	u := clusterObject(name)
	u.SetFinalizers(finalizers)
	u.Object["spec"] = map[string]any{
		"paused":            true,
		"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": name},
		"controlPlaneRef":   map[string]any{"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": name},
	}
	admin := on.Side.Client()
	harness.Must(t, admin.Create(ctx, u))
	cleanup(t, func(ctx context.Context) error {
		// In this order, because the controller of Clusters adds its finalizer at any time before the deletion, and
		// never after it.
		if err := client.IgnoreNotFound(admin.Delete(ctx, u.DeepCopy())); err != nil {
			return err
		}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		return client.IgnoreNotFound(admin.Patch(ctx, u, patch))
	})
}

func devMachine() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "DevMachine"})
	u.SetNamespace(refusalsNS)
	u.SetName("tried")
	u.Object["spec"] = map[string]any{"backend": map[string]any{"inMemory": map[string]any{}}}
	return u
}

// serve makes a side serve a kind in another version than v1beta2, which remains the stored version, or in none if
// version is "".
func serve(ctx context.Context, t *testing.T, on *scuted.Installation, crd, version string) {
	t.Helper()
	admin := on.Side.Client()
	definition := func(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
		d := &apiextensionsv1.CustomResourceDefinition{}
		return d, admin.Get(ctx, client.ObjectKey{Name: crd}, d)
	}
	before, err := definition(ctx)
	harness.Must(t, err)
	changed := before.DeepCopy()
	var want []string
	for i := range changed.Spec.Versions {
		changed.Spec.Versions[i].Served = false
	}
	if version != "" {
		i := slices.IndexFunc(changed.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
		other := *changed.Spec.Versions[i].DeepCopy()
		other.Name, other.Served, other.Storage = version, true, false
		changed.Spec.Versions = append(changed.Spec.Versions, other)
		want = []string{version}
	}
	harness.Must(t, admin.Update(ctx, changed))
	cleanup(t, func(ctx context.Context) error {
		now, err := definition(ctx)
		if err != nil {
			return err
		}
		now.Spec.Versions = before.Spec.Versions
		if err := admin.Update(ctx, now); err != nil {
			return err
		}
		return waitServed(ctx, on, before.Spec.Group, before.Spec.Names.Plural, served(before))
	})
	harness.Must(t, waitServed(ctx, on, before.Spec.Group, before.Spec.Names.Plural, want))
}

func served(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var versions []string
	for _, v := range crd.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
		}
	}
	return versions
}

// waitServed waits until discovery lists exactly these versions of a resource.
func waitServed(ctx context.Context, on *scuted.Installation, group, plural string, versions []string) error {
	d, err := discovery.NewDiscoveryClientForConfig(on.Side.Config())
	if err != nil {
		return err
	}
	slices.Sort(versions)
	for {
		_, lists, err := d.ServerGroupsAndResources()
		var found []string
		for _, list := range lists {
			gv, _ := schema.ParseGroupVersion(list.GroupVersion)
			if gv.Group == group && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }) {
				found = append(found, gv.Version)
			}
		}
		slices.Sort(found)
		if err == nil && slices.Equal(found, versions) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// providerVersion sets another version of a side's kubeadm control plane provider in clusterctl's inventory.
func providerVersion(ctx context.Context, t *testing.T, on *scuted.Installation, version string) {
	t.Helper()
	admin := on.Side.Client()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "clusterctl.cluster.x-k8s.io", Version: "v1alpha3", Kind: "ProviderList"})
	harness.Must(t, admin.List(ctx, list))
	for i := range list.Items {
		u := &list.Items[i]
		if kind, _, _ := unstructured.NestedString(u.Object, "type"); kind != "ControlPlaneProvider" {
			continue
		}
		before, _, _ := unstructured.NestedString(u.Object, "version")
		set := func(ctx context.Context, version string) error {
			return admin.Patch(ctx, u.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"version":"`+version+`"}`)))
		}
		harness.Must(t, set(ctx, version))
		cleanup(t, func(ctx context.Context) error { return set(ctx, before) })
		return
	}
	t.Fatal("no control plane provider in clusterctl's inventory")
}

// strays creates an object at the source until the test ends.
func strays(ctx context.Context, t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	admin := shared.blue.Side.Client()
	harness.Must(t, admin.Create(ctx, u))
	cleanup(t, func(ctx context.Context) error { return admin.Delete(ctx, u) })
}

// addressOf returns an IPAddress that a cluster owns, from a pool of a kind that is not served here.
func addressOf(ctx context.Context, t *testing.T, cluster string) *unstructured.Unstructured {
	t.Helper()
	owner := clusterObject(cluster)
	harness.Must(t, shared.blue.Side.Client().Get(ctx, client.ObjectKeyFromObject(owner), owner))
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"address": "192.0.2.10", "prefix": int64(24), "gateway": "192.0.2.1", "claimRef": map[string]any{"name": cluster},
		"poolRef": map[string]any{"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "nodes"},
	}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "ipam.cluster.x-k8s.io", Version: "v1beta2", Kind: "IPAddress"})
	u.SetNamespace(refusalsNS)
	u.SetName(cluster + "-address")
	u.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": cluster})
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	return u
}

// secretOf returns a Secret that another program created and owns.
func secretOf(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"type": "cluster.x-k8s.io/secret"}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	u.SetNamespace(refusalsNS)
	u.SetName(name)
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "external-secrets.io/v1", Kind: "ExternalSecret", Name: name, UID: "6d1c2f5e-0d5c-4f5e-9c55-3f6f6f0f4a11"}})
	return u
}

// provider installs a kind of another infrastructure provider at the source, as clusterctl would.
func provider(ctx context.Context, t *testing.T) {
	t.Helper()
	defines(ctx, t, shared.blue, definition("gadgets", "Gadget", apiextensionsv1.NamespaceScoped))
}

// definition returns the definition of a kind of an infrastructure provider, with these labels in addition to those of
// clusterctl.
func definition(plural, kind string, scope apiextensionsv1.ResourceScope, labels ...string) *apiextensionsv1.CustomResourceDefinition {
	const group = "infrastructure.cluster.x-k8s.io"
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:   plural + "." + group,
			Labels: map[string]string{"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": "infrastructure-test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1beta2", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type:       "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", XPreserveUnknownFields: ptr.To(true)}},
				}},
			}},
		},
	}
	for _, label := range labels {
		crd.Labels[label] = ""
	}
	return crd
}

// defines makes a side serve a kind until the test ends.
func defines(ctx context.Context, t *testing.T, on *scuted.Installation, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	admin := on.Side.Client()
	harness.Must(t, admin.Create(ctx, crd))
	cleanup(t, func(ctx context.Context) error {
		if err := admin.Delete(ctx, crd); err != nil {
			return err
		}
		return waitServed(ctx, on, crd.Spec.Group, crd.Spec.Names.Plural, nil)
	})
	harness.Must(t, waitServed(ctx, on, crd.Spec.Group, crd.Spec.Names.Plural, []string{"v1beta2"}))
}
