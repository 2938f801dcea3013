package kube

import (
	"cmp"
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"scute.dev/kube/object"
)

// InventoryType returns the kind in which clusterctl records the providers that it installs. Its
// CRD lacks clusterctl's label.
func InventoryType() Type {
	v := clusterctlv1.GroupVersion
	return Type{Group: v.Group, Kind: "Provider", Plural: "providers", Versions: []string{v.Version}, Namespaced: true}
}

// OperatorType returns the kind of Cluster API's operator for a type of provider. The operator does
// not write clusterctl's inventory.
func OperatorType(t clusterctlv1.ProviderType) Type {
	return Type{
		Group: "operator.cluster.x-k8s.io", Kind: string(t), Plural: strings.ToLower(string(t)) + "s", Versions: []string{"v1alpha2"}, Namespaced: true,
	}
}

func providerTypes() []clusterctlv1.ProviderType {
	return []clusterctlv1.ProviderType{
		clusterctlv1.CoreProviderType, clusterctlv1.BootstrapProviderType, clusterctlv1.ControlPlaneProviderType, clusterctlv1.InfrastructureProviderType,
		clusterctlv1.IPAMProviderType, clusterctlv1.RuntimeExtensionProviderType, clusterctlv1.AddonProviderType,
	}
}

// Provider is an installed provider of Cluster API.
type Provider struct {
	Type      clusterctlv1.ProviderType
	Name      string
	Version   string // empty if not recorded
	Namespace string
}

// ProviderOf decodes an object of clusterctl's inventory or of Cluster API's operator.
func ProviderOf(u *unstructured.Unstructured) Provider {
	return Provider{
		Type:      clusterctlv1.ProviderType(cmp.Or(object.Text(u, "type"), u.GetKind())),
		Name:      cmp.Or(object.Text(u, "providerName"), u.GetName()),
		Version:   cmp.Or(object.Text(u, "version"), object.Text(u, "status", "installedVersion")),
		Namespace: u.GetNamespace(),
	}
}

// Providers lists the providers that clusterctl's inventory or Cluster API's operator records: none
// if Cluster API was installed by other means.
func (c *Cluster) Providers(ctx context.Context) (list []Provider, err error) {
	kinds := []Type{InventoryType()}
	err = c.Do(ctx, "discover the kinds of Cluster API's operator", func(context.Context) error {
		_, err := c.discovery.ServerResourcesForGroupVersion(OperatorType(clusterctlv1.CoreProviderType).GVK().GroupVersion().String())
		return err
	})
	switch {
	case err == nil:
		for _, t := range providerTypes() {
			kinds = append(kinds, OperatorType(t))
		}
	case !apierrors.IsNotFound(err):
		return nil, err
	}
	for _, kind := range kinds {
		err := c.List(ctx, kind, "", func(u *unstructured.Unstructured) error {
			list = append(list, ProviderOf(u))
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return list, nil
}
