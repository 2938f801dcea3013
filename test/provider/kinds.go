package provider

import (
	"context"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The kinds. Pauses of SlowKind are acknowledged after a delay, those of MuteKind never.
const (
	Group    = "infrastructure.test.scute.dev"
	Version  = "v1"
	SlowKind = "SlowService"
	MuteKind = "MuteService"
)

// Values returns the chart's values that allow scute to read and pause the kinds.
func Values() []string {
	return []string{
		"providers.test[0].group=" + Group, "providers.test[0].resources={" + plural(SlowKind) + "," + plural(MuteKind) + "}",
	}
}

func plural(kind string) string { return strings.ToLower(kind) + "s" }

// of returns the GroupVersionKind of a kind.
func of(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: Group, Version: Version, Kind: kind}
}

// Install creates the definitions of the kinds, with the labels of Cluster API's contract, and waits until they are
// served.
func Install(ctx context.Context, c client.Client) error {
	for _, kind := range []string{SlowKind, MuteKind} {
		if err := c.Create(ctx, definition(kind)); err != nil {
			return fmt.Errorf("defining %s: %w", kind, err)
		}
		if err := served(ctx, c, kind); err != nil {
			return fmt.Errorf("waiting until %s is served: %w", kind, err)
		}
	}
	return nil
}

func served(ctx context.Context, c client.Client, kind string) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(of(kind + "List"))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for c.List(ctx, list) != nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func definition(kind string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:   plural(kind) + "." + Group,
			Labels: map[string]string{clusterctlv1.ClusterctlLabel: "", clusterv1.GroupVersion.String(): Version},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural(kind), Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)},
				},
			}},
		},
	}
}

// New returns an object of a kind that belongs to a Cluster. It does not create it.
func New(kind, name string, cluster *clusterv1.Cluster) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(of(kind))
	u.SetNamespace(cluster.Namespace)
	u.SetName(name)
	u.SetLabels(map[string]string{clusterv1.ClusterNameLabel: cluster.Name})
	u.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID,
	}})
	return u
}
