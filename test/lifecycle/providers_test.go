package lifecycle

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/testbed"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/providers"
)

// components are the manifests of a provider as in its repository: a namespace, a controller with a ServiceAccount, and
// for the infrastructure provider a definition and a Secret from a variable.
const components = `
apiVersion: v1
kind: Namespace
metadata: {name: NAME-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: NAME-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME-manager}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAME-manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NAME-manager}
subjects: [{kind: ServiceAccount, name: manager, namespace: NAME-system}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: NAME-system, labels: {control-plane: NAME}}
spec:
  replicas: 1
  selector: {matchLabels: {control-plane: NAME}}
  template:
    metadata: {labels: {control-plane: NAME}}
    spec: {serviceAccountName: manager, containers: [{name: manager, image: "registry.example/NAME:VERSION"}]}
`

const toyComponents = components + `
---
apiVersion: v1
kind: Secret
metadata: {name: credentials, namespace: NAME-system}
data: {token: "${TOY_TOKEN_B64}"}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: toyclusters.infrastructure.cluster.x-k8s.io, labels: {cluster.x-k8s.io/v1beta2: v1beta1}}
spec:
  group: infrastructure.cluster.x-k8s.io
  scope: Namespaced
  names: {kind: ToyCluster, listKind: ToyClusterList, plural: toyclusters, singular: toycluster}
  versions:
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

const releases = `
apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 13, contract: v1beta2}
- {major: 1, minor: 14, contract: v1beta2}
`

// repository writes a local repository of the providers in two versions, and returns clusterctl's configuration for it.
func repository(t *testing.T) map[string]any {
	t.Helper()
	base := t.TempDir()
	var providers []any
	for label, p := range map[string]struct{ name, kind, file, text string }{
		"cluster-api":        {"cluster-api", "CoreProvider", "core-components.yaml", components},
		"infrastructure-toy": {"toy", "InfrastructureProvider", "infrastructure-components.yaml", toyComponents},
		"ipam-hand":          {"hand", "IPAMProvider", "ipam-components.yaml", components},
	} {
		for _, version := range []string{"v1.13.0", "v1.14.0"} {
			dir := filepath.Join(base, label, version)
			harness.Must(t, os.MkdirAll(dir, 0o755))
			text := strings.NewReplacer("NAME", "scute-"+p.name, "VERSION", version).Replace(p.text)
			harness.Must(t, os.WriteFile(filepath.Join(dir, p.file), []byte(text), 0o600))
			harness.Must(t, os.WriteFile(filepath.Join(dir, "metadata.yaml"), []byte(releases), 0o600))
		}
		providers = append(providers, map[string]any{"name": p.name, "type": p.kind, "url": "file://" + filepath.Join(base, label, "v1.14.0", p.file)})
	}
	return map[string]any{"providers": providers}
}

const toyToken = "t0y-t0ken-n0b0dy-may-see"

func TestProviders(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	side := testbed.StartForTest(t, testbed.Options{Sides: []string{"new"}, Bare: true}).Side("new")
	admin := side.Client()
	// The test bed has an inventory as if clusterctl had installed its providers, but here none is installed.
	list := &unstructured.Unstructured{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "clusterctl.cluster.x-k8s.io", Version: "v1alpha3", Kind: "Provider"})
	for _, namespace := range namespaces(ctx, t, admin) {
		harness.Must(t, admin.DeleteAllOf(ctx, list, client.InNamespace(namespace)))
	}
	const namespace = "providers"
	harness.Must(t, admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	encoded := base64.StdEncoding.EncodeToString([]byte(toyToken))
	harness.Must(t, admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "toy"}, Data: map[string][]byte{"TOY_TOKEN_B64": []byte(encoded)}}))
	config := repository(t)
	kind := &providers.Kind{Clusters: &access.Clusters{Own: ownConfig(side), Local: true}}
	with := func(version string, more map[string]any) map[string]any {
		w := map[string]any{
			"core": "cluster-api:" + version, "infrastructure": []string{"toy:" + version}, "config": config, "wait": false,
			"variablesFrom": map[string]any{"secretRef": map[string]any{"name": "toy"}},
		}
		for k, v := range more {
			w[k] = v
		}
		return w
	}
	s := &step{t: t, kind: kind, namespace: namespace, name: "install", with: with("v1.13.0", map[string]any{"skipCertManager": true})}

	t.Run("cert-manager is missing", func(t *testing.T) {
		err := s.run(ctx)
		if !task.IsFinal(err) || !strings.Contains(fmt.Sprint(err), "cert-manager.io") {
			t.Fatalf("run without cert-manager = %v, want a final error", err)
		}
		t.Log(err)
		harness.Must(t, s.undoes(ctx))
	})
	harness.Must(t, applyFile(ctx, admin, "testdata/cert-manager.yaml"))
	t.Run("a death between the record and the install", func(t *testing.T) {
		s.recorded = func() error { return errDeath }
		if err := s.run(ctx); err == nil {
			t.Fatal("the attempt continued after its record failed")
		}
		s.recorded = nil
		wantProviders(ctx, t, admin, nil)
	})
	t.Run("a death in the middle of the install", func(t *testing.T) {
		dying, die := context.WithCancel(ctx)
		s.progress = func(message string) {
			if strings.HasPrefix(message, "installing") {
				go func() {
					for ctx.Err() == nil && deployment(ctx, admin, "scute-cluster-api-system") == nil {
						time.Sleep(time.Millisecond)
					}
					die()
				}()
			}
		}
		if err := s.run(dying); err == nil {
			t.Log("the attempt ended before it was interrupted")
		}
		die()
		s.progress = nil
	})
	t.Run("install", func(t *testing.T) {
		harness.Must(t, s.run(ctx))
		t.Logf("%s", s.output)
		wantProviders(ctx, t, admin, map[string]string{"cluster-api": "v1.13.0", "infrastructure-toy": "v1.13.0"})
		if s.adopted {
			t.Error("providers that this run installed count as adopted")
		}
		secret := &corev1.Secret{}
		harness.Must(t, admin.Get(ctx, client.ObjectKey{Namespace: "scute-toy-system", Name: "credentials"}, secret))
		if string(secret.Data["token"]) != toyToken {
			t.Error("the Secret does not have the variable's value")
		}
		for what, text := range map[string]string{"record": string(s.undo), "output": string(s.output)} {
			if strings.Contains(text, toyToken) || strings.Contains(text, encoded) {
				t.Errorf("the %s contains the Secret's variable: %s", what, text)
			}
		}
	})
	t.Run("what is there is done", func(t *testing.T) {
		again := &step{t: t, kind: kind, namespace: namespace, name: "again", with: s.with}
		harness.Must(t, again.run(ctx))
		if !again.adopted {
			t.Errorf("providers were not adopted: %s", again.undo)
		}
		harness.Must(t, again.undoes(ctx))
		wantProviders(ctx, t, admin, map[string]string{"cluster-api": "v1.13.0", "infrastructure-toy": "v1.13.0"})
	})
	t.Run("waits until the Deployments are available", func(t *testing.T) {
		waiting := &step{t: t, kind: kind, namespace: namespace, name: "wait", with: with("v1.13.0", map[string]any{"skipCertManager": true, "wait": true})}
		said := ""
		waiting.progress = func(message string) {
			if said = message; !strings.HasPrefix(message, "waiting until Deployments") {
				return
			}
			// There is no kubelet, so the test sets the status of the Deployments.
			for _, ns := range []string{"scute-cluster-api-system", "scute-toy-system"} {
				body := `{"status":{"observedGeneration":99,"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable"}]}}`
				harness.Must(t, admin.Status().Patch(ctx, deployment(ctx, admin, ns), client.RawPatch("application/merge-patch+json", []byte(body))))
			}
		}
		harness.Must(t, waiting.run(ctx))
		if !strings.Contains(said, "scute-toy-system/manager") {
			t.Errorf("progress = %q, want the Deployment", said)
		}
		if !waiting.waits || s.waits {
			t.Errorf("waits = %v for the waiting task, and %v for the installing task; want true and false", waiting.waits, s.waits)
		}
	})
	u := &step{t: t, kind: kind, namespace: namespace, name: "upgrade", with: with("v1.14.0", map[string]any{"skipCertManager": true})}
	t.Run("another version without upgrade", func(t *testing.T) {
		if err := u.run(ctx); !task.IsFinal(err) || !strings.Contains(fmt.Sprint(err), "with.upgrade") {
			t.Errorf("run with another version = %v, want an error about with.upgrade", err)
		}
	})
	t.Run("upgrade", func(t *testing.T) {
		u.with = with("v1.14.0", map[string]any{"skipCertManager": true, "upgrade": true})
		u.recorded = func() error { return errDeath }
		if err := u.run(ctx); err == nil {
			t.Fatal("the attempt continued after its record failed")
		}
		u.recorded = nil
		harness.Must(t, u.undoes(ctx)) // nothing has changed yet
		// clusterctl first scales the old version down. After an interruption here, the undo scales it up again.
		harness.Must(t, admin.Patch(ctx, deployment(ctx, admin, "scute-toy-system"), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":0}}`))))
		harness.Must(t, u.undoes(ctx))
		if n := deployment(ctx, admin, "scute-toy-system").Spec.Replicas; n == nil || *n != 1 {
			t.Errorf("replicas of the controller = %v, want 1", n)
		}
		harness.Must(t, u.run(ctx))
		wantProviders(ctx, t, admin, map[string]string{"cluster-api": "v1.14.0", "infrastructure-toy": "v1.14.0"})
		if d := deployment(ctx, admin, "scute-toy-system"); d == nil || !strings.HasSuffix(d.Spec.Template.Spec.Containers[0].Image, ":v1.14.0") {
			t.Errorf("Deployment of the controller = %+v, want v1.14.0", d)
		}
		if err := u.undoes(ctx); !task.IsFinal(err) || !strings.Contains(fmt.Sprint(err), "cannot be downgraded") {
			t.Errorf("undo of an upgrade = %v, want an error about the downgrade", err)
		}
	})
	t.Run("what somebody else has installed between two attempts stays", func(t *testing.T) {
		late := &step{t: t, kind: kind, namespace: namespace, name: "late", with: with("v1.14.0", map[string]any{"skipCertManager": true, "ipam": []string{"hand:v1.14.0"}})}
		late.recorded = func() error { return errDeath }
		if err := late.run(ctx); err == nil {
			t.Fatal("the attempt continued after its record failed")
		}
		late.recorded = nil
		byHand := &step{t: t, kind: kind, namespace: namespace, name: "by-hand", with: late.with}
		harness.Must(t, byHand.run(ctx))
		entry := &unstructured.Unstructured{}
		entry.SetGroupVersionKind(list.GroupVersionKind())
		harness.Must(t, admin.Get(ctx, client.ObjectKey{Namespace: "scute-hand-system", Name: "ipam-hand"}, entry))
		harness.Must(t, admin.Patch(ctx, entry, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"scute.dev/run":null}}}`))))
		harness.Must(t, late.run(ctx))
		harness.Must(t, late.undoes(ctx))
		want := map[string]string{"cluster-api": "v1.14.0", "infrastructure-toy": "v1.14.0", "ipam-hand": "v1.14.0"}
		wantProviders(ctx, t, admin, want)
		if deployment(ctx, admin, "scute-hand-system") == nil {
			t.Error("the provider's controller was deleted")
		}
		harness.Must(t, admin.Patch(ctx, entry, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"scute.dev/run":"providers/run/1/by-hand"}}}`))))
		harness.Must(t, byHand.undoes(ctx))
		delete(want, "ipam-hand")
		wantProviders(ctx, t, admin, want)
	})
	t.Run("nothing goes that is in use", func(t *testing.T) {
		toy := &unstructured.Unstructured{}
		toy.SetGroupVersionKind(schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "ToyCluster"})
		toy.SetNamespace(namespace)
		toy.SetName("precious")
		harness.Must(t, admin.Create(ctx, toy))
		if err := s.undoes(ctx); err == nil || !strings.Contains(err.Error(), "precious") {
			t.Errorf("undo with an object of the provider = %v, want an error with its name", err)
		} else {
			t.Log(err)
		}
		harness.Must(t, admin.Delete(ctx, toy))
	})
	t.Run("undo removes what was installed and nothing else", func(t *testing.T) {
		harness.Must(t, s.undoes(ctx))
		wantProviders(ctx, t, admin, nil)
		for _, name := range []string{"scute-cluster-api-system", "scute-toy-system"} {
			if err := admin.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
				t.Errorf("Get of namespace %s = %v, want not found", name, err)
			}
		}
		crd := &metav1.PartialObjectMetadata{}
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		if err := admin.Get(ctx, client.ObjectKey{Name: "toyclusters.infrastructure.cluster.x-k8s.io"}, crd); !apierrors.IsNotFound(err) {
			t.Errorf("Get of the definition of ToyCluster = %v, want not found", err)
		}
		if err := admin.Get(ctx, client.ObjectKey{Name: "clusters.cluster.x-k8s.io"}, crd); err != nil {
			t.Errorf("Get of the earlier definition of Cluster = %v, want nil", err)
		}
		harness.Must(t, s.undoes(ctx))
	})
}

// TestProvidersWithCertManager installs cert-manager with clusterctl from a local repository, and a provider that the
// API server refuses.
func TestProvidersWithCertManager(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	side := testbed.StartForTest(t, testbed.Options{Sides: []string{"plain"}, Bare: true}).Side("plain")
	admin := side.Client()
	list := &unstructured.Unstructured{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "clusterctl.cluster.x-k8s.io", Version: "v1alpha3", Kind: "Provider"})
	for _, namespace := range namespaces(ctx, t, admin) {
		harness.Must(t, admin.DeleteAllOf(ctx, list, client.InNamespace(namespace)))
	}
	config := repository(t)
	manifest, err := os.ReadFile("testdata/cert-manager.yaml")
	harness.Must(t, err)
	dir := filepath.Join(t.TempDir(), "cert-manager", "v1.21.1")
	harness.Must(t, os.MkdirAll(dir, 0o755))
	harness.Must(t, os.WriteFile(filepath.Join(dir, "cert-manager.yaml"), append([]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: cert-manager}\n---\n"), manifest...), 0o600))
	config["cert-manager"] = map[string]any{"url": "file://" + filepath.Join(dir, "cert-manager.yaml"), "version": "v1.21.1", "timeout": "1m"}
	kind := &providers.Kind{Clusters: &access.Clusters{Own: ownConfig(side), Local: true}}
	s := &step{t: t, kind: kind, namespace: "default", name: "install", with: map[string]any{"core": "cluster-api:v1.14.0", "config": config, "wait": false}}
	harness.Must(t, s.run(ctx))
	wantProviders(ctx, t, admin, map[string]string{"cluster-api": "v1.14.0"})
	harness.Must(t, admin.Get(ctx, client.ObjectKey{Name: "cert-manager"}, &corev1.Namespace{}))

	// The Secret's data is not base64, and the API server's error quotes it.
	harness.Must(t, admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "toy"}, Data: map[string][]byte{"TOY_TOKEN_B64": []byte(toyToken)}}))
	bad := &step{t: t, kind: kind, namespace: "default", name: "bad", with: map[string]any{
		"infrastructure": []string{"toy:v1.14.0"}, "config": config, "wait": false, "skipCertManager": true, "variablesFrom": map[string]any{"secretRef": map[string]any{"name": "toy"}},
	}}
	const waits = 2 * time.Minute // clusterctl waits longer if it retries what was refused
	started := time.Now()
	err = bad.run(ctx)
	if !task.IsFinal(err) || !strings.Contains(err.Error(), "Secret") || strings.Contains(err.Error(), toyToken) || time.Since(started) > waits {
		t.Errorf("after %s: %v; want an early error without the Secret's value", time.Since(started).Round(time.Second), err)
	}
	t.Log(err)
	harness.Must(t, bad.undoes(ctx))
	wantProviders(ctx, t, admin, map[string]string{"cluster-api": "v1.14.0"})
	harness.Must(t, s.undoes(ctx))
	wantProviders(ctx, t, admin, nil)
}

func namespaces(ctx context.Context, t *testing.T, c client.Client) []string {
	t.Helper()
	list := &corev1.NamespaceList{}
	harness.Must(t, c.List(ctx, list))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

func deployment(ctx context.Context, c client.Client, namespace string) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "manager"}, d); err != nil {
		return nil
	}
	return d
}

func wantProviders(ctx context.Context, t *testing.T, c client.Client, want map[string]string) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "clusterctl.cluster.x-k8s.io", Version: "v1alpha3", Kind: "ProviderList"})
	if err := c.List(ctx, list); err != nil && !apierrors.IsNotFound(err) {
		if len(want) == 0 {
			return // the inventory has no definition yet
		}
		t.Fatal(err)
	}
	have := make(map[string]string)
	for i := range list.Items {
		have[list.Items[i].GetName()], _, _ = unstructured.NestedString(list.Items[i].Object, "version")
	}
	if len(have) != len(want) {
		t.Errorf("providers %v, want %v", have, want)
	}
	for name, version := range want {
		if have[name] != version {
			t.Errorf("version of provider %s = %q, want %s", name, have[name], version)
		}
	}
}
