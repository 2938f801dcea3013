package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube"
	"scute.dev/mover"
	"scute.dev/test/catalog"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/stack"
	"scute.dev/test/testbed"
)

// TestEveryProviderMoves moves, with the chart's default permissions, a cluster of each provider that has one object of
// each kind. The kinds are served and labelled as in a real installation, but have no controllers. The API servers
// accept an owner reference that blocks the deletion of its owner only from clients that may update the owner's
// finalizers.
func TestEveryProviderMoves(t *testing.T) {
	ctx := harness.Deadline(t, 10*time.Minute)
	providers, err := catalog.Providers(ctx)
	harness.Must(t, err)
	providers = slices.DeleteFunc(providers, installed)
	bed := testbed.StartForTest(t, testbed.Options{Bare: true, Admission: []string{"OwnerReferencesPermissionEnforcement"}})
	gadget := gadgets()
	var sides sync.WaitGroup
	failed := make([]error, 2)
	for i, side := range bed.Sides() {
		sides.Go(func() {
			definitions := []client.Object{gadget.DeepCopy()}
			for _, p := range providers {
				for _, d := range p.Definitions {
					definitions = append(definitions, anyObject(d))
				}
			}
			failed[i] = stack.Serve(ctx, side.Client(), definitions)
		})
	}
	sides.Wait()
	harness.Must(t, errors.Join(failed...))
	blue, err := scuted.Install(ctx, bed.Side("blue"), shared.programs)
	harness.Must(t, err)
	green, err := scuted.Install(ctx, bed.Side("green"), shared.programs)
	harness.Must(t, err)
	harness.Daemon(t, blue, scuted.DaemonOptions{})
	kinds := make(map[string][]string)
	for _, p := range providers {
		kinds[p.Name] = small(ctx, t, blue, p)
		harness.Must(t, blue.PutTarget(ctx, p.Name, green))
	}

	t.Run("a kind that nobody granted", func(t *testing.T) { ungranted(ctx, t, blue, green, gadget, providers[0].Name) })
	for _, p := range providers[1:] {
		harness.Must(t, blue.Create(ctx, scuted.NewMove(p.Name, "away", green, "small")))
	}
	for _, p := range providers {
		t.Run(p.Name, func(t *testing.T) {
			over, err := blue.Wait(ctx, p.Name, "away", scuted.Over)
			harness.Must(t, err)
			if over.Status.Phase != mover.PhaseSucceeded {
				t.Fatalf("phase = %s, want Succeeded: %s\n%+v", over.Status.Phase, over.Status.Message, over.Status.Findings)
			}
			for _, kind := range kinds[p.Name] {
				gk := schema.ParseGroupKind(kind)
				mapping, err := green.Side.Client().RESTMapper().RESTMapping(gk)
				harness.Must(t, err)
				u := &unstructured.Unstructured{}
				u.SetGroupVersionKind(mapping.GroupVersionKind)
				if err := green.Side.Client().Get(ctx, client.ObjectKey{Namespace: p.Name, Name: "small"}, u); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// installed reports whether the test bed installs a provider itself. Other tests move its objects.
func installed(p catalog.Provider) bool {
	return slices.Contains([]string{"core", "dev", "kubeadm"}, p.Name)
}

// anyObject returns a definition that accepts any object, because the test is about kinds, labels and permissions, not
// fields.
func anyObject(d *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	d = d.DeepCopy()
	for i := range d.Spec.Versions {
		d.Spec.Versions[i].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	}
	return d
}

// gadgets returns a definition with clusterctl's label that the chart does not list.
func gadgets() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets.example.org", Labels: map[string]string{clusterctlv1.ClusterctlLabel: ""}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.org", Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Gadget", Plural: "gadgets"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}

// small creates a Cluster that owns one object of each kind of a provider, and returns the kinds.
func small(ctx context.Context, t *testing.T, on *scuted.Installation, p catalog.Provider) (kinds []string) {
	t.Helper()
	c := on.Side.Client()
	harness.Must(t, c.Create(ctx, namespace(p.Name)))
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Name, Name: "small"},
		Spec:       clusterv1.ClusterSpec{ClusterNetwork: clusterv1.ClusterNetwork{ServiceDomain: "cluster.local"}},
	}
	harness.Must(t, c.Create(ctx, cluster))
	cluster.Status.Initialization.InfrastructureProvisioned = new(true)
	cluster.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, Reason: "Initialized", LastTransitionTime: metav1.Now(),
	}}
	harness.Must(t, c.Status().Update(ctx, cluster))
	kinds = append(kinds, "Cluster.cluster.x-k8s.io")
	for _, d := range p.Definitions {
		if d.Spec.Scope != apiextensionsv1.NamespaceScoped || hosted(d.Spec.Names.Kind, d.Spec.Group) {
			continue
		}
		i := slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: d.Spec.Group, Version: d.Spec.Versions[i].Name, Kind: d.Spec.Names.Kind})
		u.SetNamespace(p.Name)
		u.SetName("small")
		u.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "small"})
		u.SetFinalizers([]string{"example.org/kept"})
		u.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "small", UID: cluster.UID, BlockOwnerDeletion: new(true),
		}})
		if err := c.Create(ctx, u); err != nil {
			t.Fatalf("creating %s: %v", d.Name, err)
		}
		kinds = append(kinds, d.Spec.Names.Kind+"."+d.Spec.Group)
	}
	return kinds
}

// hosted reports whether a kind belongs to a control plane in pods of the management cluster, which does not move.
func hosted(kind, group string) bool {
	return kind == "K0smotronControlPlane" || kind == "KamajiControlPlane" || group == "k0smotron.io"
}

// ungranted checks that a Move is refused because of a kind that the chart does not list, and that the Move and doctor
// both print the command that grants it. With the result of this command the next Move succeeds.
func ungranted(ctx context.Context, t *testing.T, blue, green *scuted.Installation, d *apiextensionsv1.CustomResourceDefinition, ns string) {
	command := kube.GrantCommand([]kube.Type{{Group: d.Spec.Group, Kind: "Gadget", Plural: "gadgets", Versions: []string{"v1"}}})
	over := move(ctx, t, blue, scuted.NewMove(ns, "refused", green, "small"))
	isRefused(t, over, []v1alpha1.MoveFinding{finding("source", "Gadget.example.org", command)})
	said, err := blue.Scutectl(ctx, "doctor").Output()
	if !strings.Contains(string(said), "scuted may not list 1 installed kind, so it refuses every move: Gadget.example.org; remedy: run "+command) {
		t.Errorf("doctor: %v\n%s", err, said)
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "scute-gadgets-example-org", Labels: map[string]string{kube.AggregateLabel: "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"example.org"}, Resources: []string{"gadgets"}, Verbs: []string{"get", "list", "patch", "delete"}}},
	}
	admin, sum := blue.Side.Client(), &rbacv1.ClusterRole{}
	harness.Must(t, admin.Create(ctx, role))
	harness.Must(t, admin.Get(ctx, client.ObjectKey{Name: "scute-providers"}, sum))
	// The test bed has no controller that aggregates ClusterRoles.
	if s := sum.AggregationRule.ClusterRoleSelectors; len(s) != 1 || s[0].MatchLabels[kube.AggregateLabel] != role.Labels[kube.AggregateLabel] {
		t.Fatalf("ClusterRole scute-providers selects by %v", s)
	}
	sum.Rules = role.Rules
	harness.Must(t, admin.Update(ctx, sum))
	harness.Await(ctx, t, "doctor finds that all kinds may be listed", func() string {
		said, _ := blue.Scutectl(ctx, "doctor").Output()
		for line := range strings.Lines(string(said)) {
			if strings.HasPrefix(line, "ok       kinds ") {
				return ""
			}
		}
		return string(said)
	})
	for _, want := range []string{"ok       Cluster API    Clusters are served in v1beta2", "kinds of contract v1beta1", "ok       providers      "} {
		if said, _ := blue.Scutectl(ctx, "doctor").Output(); !strings.Contains(string(said), want) {
			t.Errorf("doctor: output lacks %q:\n%s", want, said)
		}
	}
	harness.Must(t, blue.Create(ctx, scuted.NewMove(ns, "away", green, "small")))
}
