package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// ManifestProvider is the default provider. It applies manifests with variables in clusterctl's
// syntax: ${NAME}, ${NAME:=default}. The variables below have values from the specification of the
// cluster. The values of all other variables are in the specification's field for variables.
//
//	NAMESPACE  CLUSTER_NAME  KUBERNETES_VERSION  CONTROL_PLANE_MACHINE_COUNT  WORKER_MACHINE_COUNT
type ManifestProvider struct {
	params           Params
	cluster          provider.Cluster
	apply, providers task.Kind
}

// NewManifestProvider checks the parameters. cluster supplies the variables for the manifests of
// components, networking and configuration.
func NewManifestProvider(p Params, cluster provider.Cluster, deps *Deps) (*ManifestProvider, []workflow.Problem) {
	made := &ManifestProvider{params: p, cluster: cluster, apply: deps.Kinds["Apply"], providers: deps.Kinds["Providers"]}
	var problems []workflow.Problem
	p.eachSource(func(field string, s *Source) {
		problems = append(problems, s.check(paramsField+"."+field, deps.Clusters.IsLocal(), sampleValues(cluster))...)
	})
	problems = append(problems, made.checkProviders("components", p.Components.Providers)...)
	if c := p.Upgrade.Components; c != nil {
		problems = append(problems, made.checkProviders("upgrade.components", c.Providers)...)
	}
	return made, problems
}

func (p *ManifestProvider) checkProviders(components string, given json.RawMessage) []workflow.Problem {
	field := paramsField + "." + components + ".providers"
	if len(given) == 0 {
		return nil
	}
	with, err := providersWith(given, access.ClusterRef{}, false)
	if err != nil {
		return []workflow.Problem{{Field: field, Message: err.Error(), Remedy: "set the inputs of kind Providers"}}
	}
	if p.providers == nil {
		return []workflow.Problem{{Field: field, Message: "kind Providers is not available here", Remedy: "use manifests"}}
	}
	problems := p.providers.Validate(with)
	for i := range problems {
		problems[i].Field = field + "." + problems[i].Field
	}
	return problems
}

const (
	providersPart = "providers"
	manifestsPart = "manifests"
)

// InstallComponents installs the clusterctl providers first, then the manifests. In an upgrade it
// installs the components of params.upgrade.
func (p *ManifestProvider) InstallComponents(c *provider.Context, on access.ClusterRef) error {
	return p.applyComponents(c, p.params.isUpgrade, on, false)
}

// UninstallComponents deletes what InstallComponents created and keeps what existed before.
func (p *ManifestProvider) UninstallComponents(c *provider.Context, on access.ClusterRef) error {
	return p.revert(c, p.params.isUpgrade, on, false)
}

// UpgradeComponents upgrades the components to the versions in params.upgrade.components.
func (p *ManifestProvider) UpgradeComponents(c *provider.Context, on access.ClusterRef) error {
	return p.applyComponents(c, true, on, true)
}

// RestoreComponents restores the manifests. It fails for upgraded clusterctl providers, because
// they cannot be downgraded.
func (p *ManifestProvider) RestoreComponents(c *provider.Context, on access.ClusterRef) error {
	return p.revert(c, true, on, true)
}

// Differences returns the components that an upgrade would change. It compares clusterctl's
// inventory and the live objects with the providers and manifests that the upgrade applies.
func (p *ManifestProvider) Differences(c *provider.Context, on access.ClusterRef) (all []provider.Component, err error) {
	if all, err = p.compareVersions(c, on); err != nil {
		return nil, err
	}
	_, components := p.params.components(true)
	field, networking := p.params.networking(true)
	for at, m := range map[string]*Manifests{"components": &components.Manifests, field: networking} {
		objects, err := p.loadObjects(c, at, m)
		if err != nil {
			return nil, err
		}
		names, err := provider.ChangedObjects(c, on, c.Call().Namespace, objects)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			all = append(all, provider.Component{Name: name})
		}
	}
	slices.SortStableFunc(all, func(a, b provider.Component) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func (p *ManifestProvider) compareVersions(c *provider.Context, on access.ClusterRef) (all []provider.Component, err error) {
	var with struct {
		Core                                                                   string
		Bootstrap, ControlPlane, Infrastructure, Addon, IPAM, RuntimeExtension []string
	}
	_, components := p.params.components(true)
	if len(components.Providers) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(components.Providers, &with); err != nil {
		return nil, task.Final(err)
	}
	cl, err := c.Open(on)
	if err != nil {
		return nil, err
	}
	there := make(map[string]string)
	err = cl.Kube.List(c, kube.InventoryType(), "", func(u *unstructured.Unstructured) error {
		p := kube.ProviderOf(u)
		there[string(p.Type)+" "+p.Name] = p.Version
		return nil
	})
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	for kind, names := range map[string][]string{
		"CoreProvider": {with.Core}, "BootstrapProvider": with.Bootstrap, "ControlPlaneProvider": with.ControlPlane,
		"InfrastructureProvider": with.Infrastructure, "AddonProvider": with.Addon, "IPAMProvider": with.IPAM, "RuntimeExtensionProvider": with.RuntimeExtension,
	} {
		for _, s := range names {
			if name, version, _ := strings.Cut(s, ":"); name != "" && there[kind+" "+name] != version {
				all = append(all, provider.Component{Name: kind + " " + name, OldVersion: there[kind+" "+name], NewVersion: version})
			}
		}
	}
	return all, nil
}

// InstallNetworking applies the manifests of params.networking.
func (p *ManifestProvider) InstallNetworking(c *provider.Context, on access.ClusterRef) error {
	return p.applyManifests(c, "networking", &p.params.Networking, on)
}

// UninstallNetworking reverts the manifests that this step applied.
func (p *ManifestProvider) UninstallNetworking(c *provider.Context, on access.ClusterRef) error {
	return c.Revert(manifestsPart, p.apply, provider.ApplyWith{Cluster: on})
}

// UpgradeNetworking applies the manifests of params.upgrade.networking.
func (p *ManifestProvider) UpgradeNetworking(c *provider.Context, on access.ClusterRef) error {
	field, manifests := p.params.networking(true)
	return p.applyManifests(c, field, manifests, on)
}

// RestoreNetworking reverts the manifests that this step applied.
func (p *ManifestProvider) RestoreNetworking(c *provider.Context, on access.ClusterRef) error {
	return p.UninstallNetworking(c, on)
}

var errNoTemplate = task.Final(errors.New("spec.workflow.params.cluster.template is empty: set it to the template of the cluster's objects"))

// ClusterObjects renders the template of the cluster.
func (p *ManifestProvider) ClusterObjects(c *provider.Context, cluster provider.Cluster) ([]*unstructured.Unstructured, error) {
	if p.params.Cluster.Template == nil {
		return nil, errNoTemplate
	}
	return load(c, "cluster.template", p.params.Cluster.Template, variables(cluster))
}

// UpgradeObjects renders the template of the upgraded cluster. Replica counts have no defaults
// here, because a default would scale the cluster.
func (p *ManifestProvider) UpgradeObjects(c *provider.Context, cluster provider.Cluster) ([]*unstructured.Unstructured, error) {
	field, template := p.params.template(true)
	if template == nil {
		return nil, errNoTemplate
	}
	values := variables(cluster)
	counts := []struct {
		variable, parameter string
		given               *int
	}{{controlPlaneCount, "controlPlaneReplicas", cluster.ControlPlaneReplicas}, {workerCount, "workerReplicas", cluster.WorkerReplicas}}
	for _, count := range counts {
		if _, set := cluster.Variables[count.variable]; !set && count.given == nil {
			delete(values, count.variable)
		}
	}
	objects, err := load(c, field, template, values)
	for _, count := range counts {
		if _, known := values[count.variable]; err != nil && !known && strings.Contains(err.Error(), count.variable) {
			return nil, task.Final(fmt.Errorf("spec.workflow.params.%s needs ${%s}, but the cluster has no single value for it: set "+
				"spec.workflow.params.cluster.%s",
				field, count.variable, count.parameter))
		}
	}
	return objects, err
}

// RemainingObjects returns all objects of the template, if there is one.
func (p *ManifestProvider) RemainingObjects(c *provider.Context, cluster provider.Cluster) ([]*unstructured.Unstructured, error) {
	if p.params.Cluster.Template == nil {
		return nil, nil
	}
	return p.ClusterObjects(c, cluster)
}

// InstallConfiguration applies the manifests of params.configuration.
func (p *ManifestProvider) InstallConfiguration(c *provider.Context, on access.ClusterRef) error {
	return p.applyManifests(c, "configuration", &p.params.Configuration, on)
}

// UninstallConfiguration deletes what InstallConfiguration created.
func (p *ManifestProvider) UninstallConfiguration(c *provider.Context, on access.ClusterRef) error {
	return p.UninstallNetworking(c, on)
}

// Access returns params.access.
func (p *ManifestProvider) Access(*provider.Context, access.ClusterRef, provider.Cluster) (ref access.ClusterRef, ok bool, err error) {
	if p.params.Access == nil {
		return ref, false, nil
	}
	return *p.params.Access, true, nil
}

// applyComponents applies params.components. If upgraded is set, it applies the components of
// params.upgrade instead. If upgrade is set, it also upgrades installed providers.
func (p *ManifestProvider) applyComponents(c *provider.Context, upgraded bool, on access.ClusterRef, upgrade bool) error {
	field, what := p.params.components(upgraded)
	if len(what.Providers) > 0 {
		with, err := providersWith(what.Providers, on, upgrade)
		if err != nil {
			return task.Final(err)
		}
		if _, err := c.Perform(providersPart, p.providers, with); err != nil {
			return err
		}
	}
	return p.applyManifests(c, field, &what.Manifests, on)
}

func (p *ManifestProvider) revert(c *provider.Context, upgraded bool, on access.ClusterRef, upgrade bool) error {
	if err := p.UninstallNetworking(c, on); err != nil {
		return err
	}
	_, what := p.params.components(upgraded)
	if len(what.Providers) == 0 {
		return nil
	}
	with, err := providersWith(what.Providers, on, upgrade)
	if err != nil {
		return task.Final(err)
	}
	return c.Revert(providersPart, p.providers, with)
}

func (p *ManifestProvider) applyManifests(c *provider.Context, field string, m *Manifests, on access.ClusterRef) error {
	objects, err := p.loadObjects(c, field, m)
	if err != nil || len(objects) == 0 {
		return err
	}
	_, err = c.Perform(manifestsPart, p.apply, provider.ApplyWith{Manifests: objects, Cluster: on, Wait: m.Wait, Force: true})
	return err
}

func (p *ManifestProvider) loadObjects(c *provider.Context, field string, m *Manifests) (objects []*unstructured.Unstructured, err error) {
	for i := range m.Manifests {
		some, err := load(c, fmt.Sprintf("%s.manifests[%d]", field, i), &m.Manifests[i], variables(p.cluster))
		if err != nil {
			return nil, err
		}
		objects = append(objects, some...)
	}
	return objects, nil
}

func providersWith(given json.RawMessage, on access.ClusterRef, upgrade bool) (json.RawMessage, error) {
	with := map[string]any{}
	if err := json.Unmarshal(given, &with); err != nil {
		return nil, fmt.Errorf("spec.workflow.params.components.providers: %w", err)
	}
	for _, own := range []string{"cluster", "upgrade"} {
		if _, set := with[own]; set {
			return nil, fmt.Errorf("spec.workflow.params.components.providers.%s: the workflow sets it: remove it", own)
		}
	}
	if on != (access.ClusterRef{}) {
		with["cluster"] = on
	}
	if upgrade {
		with["upgrade"] = true
	}
	return json.Marshal(with)
}

const (
	controlPlaneCount = "CONTROL_PLANE_MACHINE_COUNT"
	workerCount       = "WORKER_MACHINE_COUNT"
)

func variables(cluster provider.Cluster) map[string]string {
	count := func(n *int, otherwise int) string {
		if n != nil {
			otherwise = *n
		}
		return strconv.Itoa(otherwise)
	}
	all := map[string]string{
		"NAMESPACE": cluster.Namespace, "CLUSTER_NAME": cluster.Name,
		controlPlaneCount: count(cluster.ControlPlaneReplicas, 1), workerCount: count(cluster.WorkerReplicas, 0),
	}
	if cluster.Version != "" {
		all["KUBERNETES_VERSION"] = cluster.Version
	}
	maps.Copy(all, cluster.Variables)
	return all
}

// sampleValues returns values to check a template with. Missing parameters are reported separately.
func sampleValues(cluster provider.Cluster) map[string]string {
	all := variables(cluster)
	for name, value := range map[string]string{"NAMESPACE": "default", "CLUSTER_NAME": "cluster", "KUBERNETES_VERSION": "v1.0.0"} {
		if all[name] == "" {
			all[name] = value
		}
	}
	return all
}
