package providers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"scute.dev/kube/document"
	"scute.dev/kube/object"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Kind installs and upgrades Cluster API providers with clusterctl's library and repositories.
//
// The undo of an install removes exactly the providers that this run installed: their inventory
// entries have the run's annotation. It keeps objects that existed before, such as the definitions
// of an earlier install. The undo of an upgrade fails once the upgrade has changed something,
// because components cannot be downgraded.
type Kind struct {
	Clusters *access.Clusters

	transport http.RoundTripper // tests replace the network
}

// With are the inputs of Providers. Each provider is named as NAME:VERSION.
type With struct {
	Core             string   `json:"core,omitempty"`
	Bootstrap        []string `json:"bootstrap,omitempty"`
	ControlPlane     []string `json:"controlPlane,omitempty"`
	Infrastructure   []string `json:"infrastructure,omitempty"`
	Addon            []string `json:"addon,omitempty"`
	IPAM             []string `json:"ipam,omitempty"`
	RuntimeExtension []string `json:"runtimeExtension,omitempty"`
	// Upgrade permits upgrading providers that are installed in another version.
	Upgrade bool `json:"upgrade,omitempty"`
	// Config is the content of a clusterctl.yaml: providers, images, cert-manager, and variables by
	// name. It must not contain secrets: see VariablesFrom.
	Config map[string]any `json:"config,omitempty"`
	// ConfigFile is the path of a clusterctl.yaml; only a local run may set it. Config overrides it.
	ConfigFile string `json:"configFile,omitempty"`
	// VariablesFrom is a Secret whose keys are variables. They override Config and are never recorded.
	VariablesFrom *ProvidersVariables `json:"variablesFrom,omitempty"`
	// Cluster is the management cluster; the run's by default.
	Cluster access.ClusterRef `json:"cluster,omitzero"`
	// TargetNamespace is the namespace of the components; each provider has a default.
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// SkipCertManager only checks that the kinds of cert-manager are served. Without it clusterctl
	// installs or upgrades cert-manager, from the network unless config.cert-manager.url is set.
	SkipCertManager bool `json:"skipCertManager,omitempty"`
	// Wait until the providers' Deployments are available. Default: true.
	Wait *bool `json:"wait,omitempty"`
}

// ProvidersVariables names a Secret on the run's cluster.
type ProvidersVariables struct {
	SecretRef access.SecretKey `json:"secretRef"`
}

type provider struct {
	Type      clusterctlv1.ProviderType `json:"type"`
	Name      string                    `json:"name"`
	Version   string                    `json:"version"`
	Namespace string                    `json:"namespace,omitempty"`

	stepKey string // the annotation of the inventory entry: the key of the step that installed it, "" for other clients
}

// label returns the value of the provider's label on its components. It is also the name of the
// provider's inventory entry.
func (p provider) label() string { return clusterctlv1.ManifestLabel(p.Name, p.Type) }

func (p provider) String() string { return p.label() + ":" + p.Version }

type changeRecord struct {
	Cluster access.Pinned   `json:"cluster,omitzero"`
	Before  []provider      `json:"before,omitempty"`
	Install []installRecord `json:"install,omitempty"`
	// Upgrade are the providers that were installed in another version than the requested one.
	Upgrade []upgradeRecord `json:"upgrade,omitempty"`
}

// upgradeRecord contains the replica counts of a provider's Deployments before the upgrade, because
// an upgrade begins by scaling them down.
type upgradeRecord struct {
	provider
	Replicas map[string]int32 `json:"replicas,omitempty"`
}

// installRecord describes a provider that the task installs. Keep lists the components of the
// provider that existed before.
type installRecord struct {
	provider
	Keep []object.Ref `json:"keep,omitempty"`
}

type output struct {
	Providers []provider `json:"providers"`
}

func (w *With) requested() []provider {
	var list []provider
	for _, part := range w.parts() {
		for _, s := range part.names {
			name, version, _ := strings.Cut(s, ":")
			list = append(list, provider{Type: part.kind, Name: name, Version: version})
		}
	}
	return list
}

type providerPart struct {
	field string
	kind  clusterctlv1.ProviderType
	names []string
}

func (w *With) parts() []providerPart {
	var core []string
	if w.Core != "" {
		core = []string{w.Core}
	}
	return []providerPart{
		{"core", clusterctlv1.CoreProviderType, core},
		{"bootstrap", clusterctlv1.BootstrapProviderType, w.Bootstrap},
		{"controlPlane", clusterctlv1.ControlPlaneProviderType, w.ControlPlane},
		{"infrastructure", clusterctlv1.InfrastructureProviderType, w.Infrastructure},
		{"ipam", clusterctlv1.IPAMProviderType, w.IPAM},
		{"runtimeExtension", clusterctlv1.RuntimeExtensionProviderType, w.RuntimeExtension},
		{"addon", clusterctlv1.AddonProviderType, w.Addon},
	}
}

// Validate checks the names. In the daemon it rejects inputs that use files of the daemon's machine.
func (p *Kind) Validate(with json.RawMessage) []workflow.Problem {
	w, problems := task.Decode[With](with)
	if len(problems) > 0 {
		return problems
	}
	count := 0
	for _, part := range w.parts() {
		for i, s := range part.names {
			count++
			field := part.field
			if part.field != "core" {
				field = fmt.Sprintf("%s[%d]", part.field, i)
			}
			if name, version, _ := strings.Cut(s, ":"); !task.HasReferences(s) && (name == "" || version == "" || strings.Contains(version, ":")) {
				problems.Add(field, fmt.Sprintf("%q is not NAME:VERSION", s), "add the version, so that a second attempt installs the same version")
			}
		}
	}
	if count == 0 {
		problems.Add("core", "no provider is named", "name at least one, for example core: cluster-api:v1.14.2")
	}
	if p.Clusters.IsLocal() {
		return problems
	}
	if w.ConfigFile != "" {
		problems.Add("configFile", "a file can only be used in a local run", "copy its content to config")
	}
	if _, ok := w.Config[overridesKey]; ok {
		problems.Add("config."+overridesKey, "a folder can only be used in a local run", "remove it")
	}
	urls, err := configURLs(w.Config)
	if err != nil {
		problems.Add("config", err.Error(), "use the format of clusterctl.yaml, and no outputs of tasks in the addresses that the daemon reads from")
	}
	for _, u := range urls {
		if !strings.HasPrefix(u.url, "https://") || strings.Contains(u.url, "$") {
			problems.Add(u.field, fmt.Sprintf("%q is not an https URL without variables", u.url), "the daemon can only read repositories over https")
		}
	}
	return problems
}

// overridesKey is clusterctl's name for a directory whose files replace those of a repository.
const overridesKey = "overridesFolder"

type configURL struct{ field, url string }

// configURLs decodes a configuration as clusterctl does, which accepts a list as a string, and
// fields in capitals.
func configURLs(config map[string]any) (urls []configURL, err error) {
	type place struct {
		URL string `json:"url"`
	}
	reader := &reader{values: config}
	var providers []place
	if err := reader.UnmarshalKey("providers", &providers); err != nil {
		return nil, fmt.Errorf("providers is not a list of providers%s", tooLargeText(err))
	}
	for i, p := range providers {
		urls = append(urls, configURL{fmt.Sprintf("config.providers[%d].url", i), p.URL})
	}
	var certManager *place
	if err := reader.UnmarshalKey("cert-manager", &certManager); err != nil {
		return nil, fmt.Errorf("cert-manager is not an object with a url%s", tooLargeText(err))
	}
	if certManager != nil && certManager.URL != "" {
		urls = append(urls, configURL{"config.cert-manager.url", certManager.URL})
	}
	return urls, nil
}

// tooLargeText returns the end of an error that must not quote err. If err means that a document is
// too large, the text says so; otherwise it is "".
func tooLargeText(err error) string {
	if errors.Is(err, document.ErrTooLarge) {
		return ": it is " + err.Error()
	}
	return ""
}

// Run installs missing providers and upgrades providers that are installed in another version.
func (p *Kind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	w, err := task.ReadInputs[With](c, p.Validate)
	if err != nil {
		return nil, err
	}
	was, err := task.Recorded[changeRecord](c)
	if err != nil {
		return nil, err
	}
	cluster, pinned, err := p.Clusters.Pin(ctx, c, w.Cluster, was.Cluster, len(was.Install)+len(was.Upgrade) > 0)
	if err != nil {
		return nil, err
	}
	a, err := p.open(ctx, c, cluster, w.Cluster, &w)
	if err != nil {
		return nil, err
	}
	defer a.close()
	record, err := a.plan(ctx, w)
	if err != nil {
		return nil, a.redactError(err)
	}
	record.Cluster = pinned
	nothing := len(record.Install) == 0 && len(record.Upgrade) == 0
	if len(c.Undo) > 0 {
		record.Before, record.Install, record.Upgrade = was.Before, mergeEarlier(was.Install, record.Install), mergeEarlier(was.Upgrade, record.Upgrade)
	}
	if err := c.Prepare(ctx, record, len(record.Install) == 0 && len(record.Upgrade) == 0); err != nil {
		return nil, err
	}
	if !nothing {
		if err := a.applyChanges(ctx, w); err != nil {
			return nil, a.redactError(err)
		}
	}
	if w.Wait == nil || *w.Wait {
		if err := a.waitAvailable(ctx, w.requested()); err != nil {
			return nil, err
		}
	}
	var out output
	there, err := a.inventory(ctx)
	if err != nil {
		return nil, err
	}
	for _, want := range w.requested() {
		if have, ok := there[want.label()]; ok {
			out.Providers = append(out.Providers, have)
		}
	}
	return json.Marshal(out)
}

// mergeEarlier returns the records of the earlier attempts, and the new records of other providers.
// What an earlier attempt installed thus does not count as existing before.
func mergeEarlier[P interface{ label() string }](was, now []P) []P {
	return append(slices.Clone(was), slices.DeleteFunc(now, func(q P) bool {
		return slices.ContainsFunc(was, func(p P) bool { return p.label() == q.label() })
	})...)
}

// Undo removes the providers that this run installed.
func (p *Kind) Undo(ctx context.Context, c *task.Call) error {
	record, err := task.Recorded[changeRecord](c)
	if err != nil || len(c.Undo) == 0 {
		return err
	}
	cluster, err := p.Clusters.OpenPinned(ctx, c, record.Cluster)
	if err != nil {
		return err
	}
	a, err := p.open(ctx, c, cluster, record.Cluster.ClusterRef, nil)
	if err != nil {
		return err
	}
	defer a.close()
	there, err := a.inventory(ctx)
	if err != nil {
		return err
	}
	changed, err := a.undoUpgrades(ctx, record, there)
	if err != nil {
		return a.redactError(err)
	}
	if err := a.remove(ctx, a.ownInstalls(record.Install, there), slices.Collect(maps.Values(there))); err != nil {
		return a.redactError(err)
	}
	if len(changed) > 0 {
		return task.Final(fmt.Errorf("%s: components cannot be downgraded, because their objects may be stored in a newer version: in a rollback, "+
			"decide `mark-undone` to keep the new versions", strings.Join(changed, ", ")))
	}
	return nil
}
