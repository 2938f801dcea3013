package inmemory

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task/access"
)

// Name is the provider's name in params.provider.
const Name = "in-memory"

// Template is the template of a cluster. It is also used for the manifest provider.
//
//go:embed cluster.yaml
var Template string

// Settings are the provider's settings in params.settings.
type Settings struct {
	// NetworkVersion is written instead of installing a real network.
	NetworkVersion string `json:"networkVersion"`
	// ComponentsVersion is written instead of installing real components.
	ComponentsVersion string `json:"componentsVersion"`
}

// Provider is the provider of the in-memory cloud. It embeds the manifest provider.
type Provider struct {
	*lifecycle.ManifestProvider
	settings Settings
}

// New returns the provider. It is a lifecycle.Factory.
func New(p lifecycle.Params, cluster provider.Cluster, deps *lifecycle.Deps) (any, []workflow.Problem) {
	made := &Provider{}
	if len(p.Settings) > 0 {
		if err := json.Unmarshal(p.Settings, &made.settings); err != nil {
			return nil, []workflow.Problem{{Field: "spec.workflow.params.settings", Message: err.Error(), Remedy: "correct the parameters"}}
		}
	}
	params := lifecycle.Params{Cluster: lifecycle.ClusterParams{Template: &lifecycle.Source{Inline: Template}}, Configuration: p.Configuration, Access: p.Access}
	var problems []workflow.Problem
	made.ManifestProvider, problems = lifecycle.NewManifestProvider(params, cluster, deps)
	return made, problems
}

const (
	componentsName = "in-memory-components"
	networkName    = "in-memory-network"
)

// InstallComponents records the version of the components. The test bed runs the controllers of a management cluster.
// It checks that they work with a dry run that their webhooks must accept.
func (p *Provider) InstallComponents(c *provider.Context, on access.ClusterRef) error {
	if err := p.atWork(c, on); err != nil {
		return err
	}
	return write(c, on, componentsName, p.settings.ComponentsVersion)
}

// UninstallComponents removes the recorded version.
func (p *Provider) UninstallComponents(c *provider.Context, on access.ClusterRef) error {
	return restore(c, on, componentsName)
}

// UpgradeComponents records the new version.
func (p *Provider) UpgradeComponents(c *provider.Context, on access.ClusterRef) error {
	return p.InstallComponents(c, on)
}

// RestoreComponents records the earlier version.
func (p *Provider) RestoreComponents(c *provider.Context, on access.ClusterRef) error {
	return restore(c, on, componentsName)
}

// InstallNetworking writes the network through the API of the new cluster.
func (p *Provider) InstallNetworking(c *provider.Context, on access.ClusterRef) error {
	return write(c, on, networkName, p.settings.NetworkVersion)
}

// UninstallNetworking removes the network.
func (p *Provider) UninstallNetworking(c *provider.Context, on access.ClusterRef) error {
	return restore(c, on, networkName)
}

// UpgradeNetworking writes the new version.
func (p *Provider) UpgradeNetworking(c *provider.Context, on access.ClusterRef) error {
	return p.InstallNetworking(c, on)
}

// RestoreNetworking writes the earlier version.
func (p *Provider) RestoreNetworking(c *provider.Context, on access.ClusterRef) error {
	return restore(c, on, networkName)
}

// atWork checks the webhooks with a dry run of a machine template. A workload cluster does not have this kind.
func (p *Provider) atWork(c *provider.Context, on access.ClusterRef) error {
	cluster, err := c.Open(on)
	if err != nil {
		return err
	}
	kind := schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "DevMachineTemplate"}
	if _, err := cluster.Client.RESTMapper().RESTMapping(kind.GroupKind()); err != nil {
		return nil //nolint:nilerr // no management cluster
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"backend": map[string]any{"inMemory": map[string]any{}},
	}}}}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(metav1.NamespaceDefault)
	u.SetName("in-memory-probe")
	err = cluster.Kube.Do(c, "probe the webhooks", func(ctx context.Context) error { return cluster.Client.Create(ctx, u, client.DryRunAll) })
	if err != nil {
		return fmt.Errorf("the in-memory controllers are not at work: %w", err)
	}
	return nil
}

// before is the state that write found.
type before struct {
	Existed bool   `json:"existed,omitempty"`
	Version string `json:"version,omitempty"`
}

// write writes a version into a ConfigMap. The in-memory API does not support server-side apply.
func write(c *provider.Context, on access.ClusterRef, name, version string) error {
	cluster, err := c.Open(on)
	if err != nil {
		return err
	}
	var found before
	noted, err := c.Recorded(name, &found)
	if err != nil {
		return err
	}
	return cluster.Kube.Do(c, "write ConfigMap "+name, func(ctx context.Context) error {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}}
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(m), m)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		exists := err == nil
		if !noted {
			adopted := exists && m.Data["version"] == version
			if err := c.Record(name, before{Existed: exists, Version: m.Data["version"]}, adopted); err != nil {
				return err
			}
			noted = true
		}
		m.Data = map[string]string{"version": version}
		if exists {
			return cluster.Client.Update(ctx, m)
		}
		return cluster.Client.Create(ctx, m)
	})
}

func restore(c *provider.Context, on access.ClusterRef, name string) error {
	var found before
	if noted, err := c.Recorded(name, &found); err != nil || !noted || !c.Started(name) {
		return err
	}
	cluster, err := c.Open(on)
	if err != nil {
		return err
	}
	return cluster.Kube.Do(c, "restore ConfigMap "+name, func(ctx context.Context) error {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}}
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(m), m)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case !found.Existed:
			return client.IgnoreNotFound(cluster.Client.Delete(ctx, m))
		}
		m.Data = map[string]string{"version": found.Version}
		return cluster.Client.Update(ctx, m)
	})
}
