package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/provider/cluster"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Provider implements a provider with manifests.
type Provider struct {
	params  Params
	cluster provider.Cluster
	// apply and providers are the kinds that apply manifests and install providers.
	apply, providers task.Kind
}

// New checks the parameters. The fields of problems begin with "spec.workflow.params". cluster supplies the variables of components and networks.
func New(p Params, cluster provider.Cluster, local bool, apply, providers task.Kind) (*Provider, []workflow.Problem) {
	const at = "spec.workflow.params"
	var problems []workflow.Problem
	values := sampleValues(cluster)
	components := func(field string, c *Components) {
		problems = append(problems, c.check(field, local, values)...)
		if len(c.Providers) == 0 {
			return
		}
		with, err := providersWith(c.Providers, access.ClusterRef{}, false)
		if err != nil {
			problems = append(problems, workflow.Problem{Field: field + ".providers", Message: err.Error(), Remedy: "set the inputs of kind Providers"})
			return
		}
		if providers == nil {
			problems = append(problems, workflow.Problem{
				Field: field + ".providers", Message: "kind Providers is not available here",
				Remedy: "use manifests",
			})
			return
		}
		for _, problem := range providers.Validate(with) {
			problem.Field = field + ".providers." + problem.Field
			problems = append(problems, problem)
		}
	}
	if t := p.Cluster.Template; t != nil {
		problems = append(problems, t.check(at+".cluster.template", local, values)...)
	}
	components(at+".components", &p.Components)
	problems = append(problems, p.Networking.check(at+".networking", local, values)...)
	problems = append(problems, p.Configuration.check(at+".configuration", local, values)...)
	if t := p.Upgrade.Template; t != nil {
		problems = append(problems, t.check(at+".upgrade.template", local, values)...)
	}
	if p.Upgrade.Components != nil {
		components(at+".upgrade.components", p.Upgrade.Components)
	}
	if n := p.Upgrade.Networking; n != nil {
		problems = append(problems, n.check(at+".upgrade.networking", local, values)...)
	}
	return &Provider{params: p, cluster: cluster, apply: apply, providers: providers}, problems
}

const (
	providersPart = "providers"
	manifestsPart = "manifests"
)

// InstallComponents installs the providers of clusterctl first, then the manifests. In an upgrade it installs the components of params.upgrade.
func (p *Provider) InstallComponents(c *sequence.Context, on access.ClusterRef) error {
	return p.applyComponents(c, p.installed(), on, false)
}

// UninstallComponents deletes what InstallComponents created, and keeps what existed before.
func (p *Provider) UninstallComponents(c *sequence.Context, on access.ClusterRef) error {
	return p.revert(c, p.installed(), on, false)
}

// UpgradeComponents upgrades the components to the versions of params.upgrade.components.
func (p *Provider) UpgradeComponents(c *sequence.Context, on access.ClusterRef) error {
	return p.applyComponents(c, p.upgraded(), on, true)
}

// RestoreComponents restores the manifests. It returns an error for upgraded providers of clusterctl, because they cannot be downgraded.
func (p *Provider) RestoreComponents(c *sequence.Context, on access.ClusterRef) error {
	return p.revert(c, p.upgraded(), on, true)
}

func (p *Provider) installed() *Components {
	if p.params.IsUpgrade {
		return p.upgraded()
	}
	return &p.params.Components
}

func (p *Provider) upgraded() *Components {
	if p.params.Upgrade.Components != nil {
		return p.params.Upgrade.Components
	}
	return &p.params.Components
}

// Differences compares the inventory of clusterctl and the manifests with what the upgrade applies.
func (p *Provider) Differences(c *sequence.Context, on access.ClusterRef) (all []provider.Component, err error) {
	if all, err = p.compareVersions(c, on); err != nil {
		return nil, err
	}
	networking, field := &p.params.Networking, "networking"
	if n := p.params.Upgrade.Networking; n != nil {
		networking, field = n, "upgrade.networking"
	}
	for at, m := range map[string]*Manifests{"components": &p.upgraded().Manifests, field: networking} {
		objects, err := p.loadObjects(c, at, m)
		if err != nil {
			return nil, err
		}
		names, err := cluster.ChangedObjects(c, on, c.Call().Namespace, objects)
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

// compareVersions compares the providers that clusterctl has installed with the providers of the upgrade.
func (p *Provider) compareVersions(c *sequence.Context, on access.ClusterRef) (all []provider.Component, err error) {
	var with struct {
		Core                                                                   string
		Bootstrap, ControlPlane, Infrastructure, Addon, IPAM, RuntimeExtension []string
	}
	if len(p.upgraded().Providers) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(p.upgraded().Providers, &with); err != nil {
		return nil, task.Final(err)
	}
	cl, err := c.Open(on)
	if err != nil {
		return nil, err
	}
	there := make(map[string]string)
	err = cl.Kube.List(c, kube.InventoryType(), "", func(u *unstructured.Unstructured) error {
		text := func(field string) string { s, _, _ := unstructured.NestedString(u.Object, field); return s }
		there[text("type")+" "+text("providerName")] = text("version")
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
func (p *Provider) InstallNetworking(c *sequence.Context, on access.ClusterRef) error {
	return p.applyManifests(c, "networking", &p.params.Networking, on)
}

// UninstallNetworking deletes what InstallNetworking created.
func (p *Provider) UninstallNetworking(c *sequence.Context, on access.ClusterRef) error {
	return c.Revert(manifestsPart, p.apply, applyWith{Cluster: on})
}

// UpgradeNetworking applies the manifests of params.upgrade.networking.
func (p *Provider) UpgradeNetworking(c *sequence.Context, on access.ClusterRef) error {
	if n := p.params.Upgrade.Networking; n != nil {
		return p.applyManifests(c, "upgrade.networking", n, on)
	}
	return p.applyManifests(c, "networking", &p.params.Networking, on)
}

// RestoreNetworking restores the manifests.
func (p *Provider) RestoreNetworking(c *sequence.Context, on access.ClusterRef) error {
	return p.UninstallNetworking(c, on)
}

var errNoTemplate = task.Final(errors.New("spec.workflow.params.cluster.template is empty: set it to the template of the cluster's objects"))

// ClusterObjects renders the template of the cluster.
func (p *Provider) ClusterObjects(c *sequence.Context, cluster provider.Cluster) ([]*unstructured.Unstructured, error) {
	if p.params.Cluster.Template == nil {
		return nil, errNoTemplate
	}
	return load(c, "cluster.template", p.params.Cluster.Template, variables(cluster))
}

// UpgradeObjects renders the template of the upgraded cluster. Numbers of machines have no defaults, because a default would scale the cluster.
func (p *Provider) UpgradeObjects(c *sequence.Context, cluster provider.Cluster) ([]*unstructured.Unstructured, error) {
	field, template, values := "cluster.template", p.params.Cluster.Template, variables(cluster)
	if p.params.Upgrade.Template != nil {
		field, template = "upgrade.template", p.params.Upgrade.Template
	}
	if template == nil {
		return nil, errNoTemplate
	}
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
func (p *Provider) RemainingObjects(c *sequence.Context, cluster provider.Cluster) ([]*unstructured.Unstructured, error) {
	if p.params.Cluster.Template == nil {
		return nil, nil
	}
	return p.ClusterObjects(c, cluster)
}

// InstallConfiguration applies the manifests of params.configuration.
func (p *Provider) InstallConfiguration(c *sequence.Context, on access.ClusterRef) error {
	return p.applyManifests(c, "configuration", &p.params.Configuration, on)
}

// UninstallConfiguration deletes what InstallConfiguration created.
func (p *Provider) UninstallConfiguration(c *sequence.Context, on access.ClusterRef) error {
	return c.Revert(manifestsPart, p.apply, applyWith{Cluster: on})
}

// Access returns params.access.
func (p *Provider) Access(*sequence.Context, access.ClusterRef, provider.Cluster) (ref access.ClusterRef, ok bool, err error) {
	if p.params.Access == nil {
		return ref, false, nil
	}
	return *p.params.Access, true, nil
}

func (p *Provider) applyComponents(c *sequence.Context, what *Components, on access.ClusterRef, upgrade bool) error {
	if len(what.Providers) > 0 {
		with, err := providersWith(what.Providers, on, upgrade)
		if err != nil {
			return task.Final(err)
		}
		if _, err := c.Perform(providersPart, p.providers, with); err != nil {
			return err
		}
	}
	field := "components"
	if what == p.params.Upgrade.Components {
		field = "upgrade.components"
	}
	return p.applyManifests(c, field, &what.Manifests, on)
}

// revert undoes components in reverse order.
func (p *Provider) revert(c *sequence.Context, what *Components, on access.ClusterRef, upgrade bool) error {
	if err := c.Revert(manifestsPart, p.apply, applyWith{Cluster: on}); err != nil {
		return err
	}
	if len(what.Providers) == 0 {
		return nil
	}
	with, err := providersWith(what.Providers, on, upgrade)
	if err != nil {
		return task.Final(err)
	}
	return c.Revert(providersPart, p.providers, with)
}

// applyWith are the inputs of the kind Apply that this package uses.
type applyWith struct {
	Manifests []*unstructured.Unstructured `json:"manifests,omitempty"`
	Cluster   access.ClusterRef            `json:"cluster,omitzero"`
	Wait      *bool                        `json:"wait,omitempty"`
	Force     bool                         `json:"force,omitempty"`
}

func (p *Provider) applyManifests(c *sequence.Context, field string, m *Manifests, on access.ClusterRef) error {
	objects, err := p.loadObjects(c, field, m)
	if err != nil || len(objects) == 0 {
		return err
	}
	_, err = c.Perform(manifestsPart, p.apply, applyWith{Manifests: objects, Cluster: on, Wait: m.Wait, Force: true})
	return err
}

// loadObjects loads all objects of manifests.
func (p *Provider) loadObjects(c *sequence.Context, field string, m *Manifests) (loadObjects []*unstructured.Unstructured, err error) {
	for i := range m.Manifests {
		some, err := load(c, fmt.Sprintf("%s.manifests[%d]", field, i), &m.Manifests[i], variables(p.cluster))
		if err != nil {
			return nil, err
		}
		loadObjects = append(loadObjects, some...)
	}
	return loadObjects, nil
}

// providersWith returns the inputs of the kind Providers for one cluster.
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

// The variables for numbers of machines.
const (
	controlPlaneCount = "CONTROL_PLANE_MACHINE_COUNT"
	workerCount       = "WORKER_MACHINE_COUNT"
)

// variables returns the variables of a cluster.
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
	for name, value := range cluster.Variables {
		all[name] = value
	}
	return all
}

// sampleValues returns values to check a template before the run. A missing parameter is a separate problem.
func sampleValues(cluster provider.Cluster) map[string]string {
	all := variables(cluster)
	for name, value := range map[string]string{"NAMESPACE": "default", "CLUSTER_NAME": "cluster", "KUBERNETES_VERSION": "v1.0.0"} {
		if all[name] == "" {
			all[name] = value
		}
	}
	return all
}
