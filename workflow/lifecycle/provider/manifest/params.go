package manifest

import (
	"encoding/json"
	"fmt"

	"scute.dev/workflow"
	"scute.dev/workflow/task/access"
)

// Params are the parameters of a named workflow for this provider.
type Params struct {
	// Cluster contains the template of the cluster.
	Cluster ClusterParams
	// Components of management clusters.
	Components Components
	// Networking of the cluster.
	Networking Manifests
	// Configuration is the user's configuration for the management cluster.
	Configuration Manifests
	// Upgrade contains the parameters that differ in an upgrade.
	Upgrade UpgradeParams
	// IsUpgrade is true if the workflow is an upgrade.
	IsUpgrade bool
	// Access is the API server of the cluster, if it differs from Cluster API's kubeconfig.
	Access *access.ClusterRef
}

// ClusterParams are the parameters of params.cluster in addition to the specification of the cluster.
type ClusterParams struct {
	// Template of the cluster's objects.
	Template *Source `json:"template,omitempty"`
}

// UpgradeParams are the parameters of params.upgrade.
type UpgradeParams struct {
	// Template of the upgraded cluster's objects. Default: the template of the cluster, with the new version.
	Template *Source `json:"template,omitempty"`
	// Components and Networking replace the parameters of the same names in an upgrade.
	Components *Components `json:"components,omitempty"`
	Networking *Manifests  `json:"networking,omitempty"`
}

// Components are the components that a management cluster needs to manage clusters.
type Components struct {
	// Providers are the inputs of the kind Providers, for the providers that clusterctl installs or upgrades.
	Providers json.RawMessage `json:"providers,omitempty"`
	Manifests
}

// Manifests are applied in their order.
type Manifests struct {
	Manifests []Source `json:"manifests,omitempty"`
	// Wait until the objects are ready. Default: true.
	Wait *bool `json:"wait,omitempty"`
}

// Source is the source of a template.
type Source struct {
	// Inline is the text of the template.
	Inline string `json:"inline,omitempty"`
	// File is the path of a file, for local runs.
	File string `json:"file,omitempty"`
	// ConfigMapRef and SecretRef are in the run's namespace of the run's own cluster.
	ConfigMapRef *Key `json:"configMapRef,omitempty"`
	SecretRef    *Key `json:"secretRef,omitempty"`
}

// Key is one key of a ConfigMap or a Secret.
type Key struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// check returns the problems of a source. It renders an inline template with the values.
func (s *Source) check(field string, local bool, values map[string]string) []workflow.Problem {
	given := 0
	for _, set := range []bool{s.Inline != "", s.File != "", s.ConfigMapRef != nil, s.SecretRef != nil} {
		if set {
			given++
		}
	}
	if given != 1 {
		return []workflow.Problem{{
			Field: field, Message: "the template must have exactly one source",
			Remedy: "set one of inline, file, configMapRef and secretRef",
		}}
	}
	if s.File != "" && !local {
		return []workflow.Problem{{Field: field + ".file", Message: "a file can only be used in a local run", Remedy: "use configMapRef or secretRef"}}
	}
	for name, key := range map[string]*Key{"configMapRef": s.ConfigMapRef, "secretRef": s.SecretRef} {
		if key != nil && (key.Name == "" || key.Key == "") {
			return []workflow.Problem{{Field: field + "." + name, Message: "name or key is empty", Remedy: "set both"}}
		}
	}
	if s.Inline != "" {
		if _, err := render([]byte(s.Inline), values); err != nil {
			return []workflow.Problem{{Field: field + ".inline", Message: err.Error(), Remedy: "correct the template"}}
		}
	}
	return nil
}

func (m *Manifests) check(field string, local bool, values map[string]string) (problems []workflow.Problem) {
	for i := range m.Manifests {
		problems = append(problems, m.Manifests[i].check(fmt.Sprintf("%s.manifests[%d]", field, i), local, values)...)
	}
	return problems
}
