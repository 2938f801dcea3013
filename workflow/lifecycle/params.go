package lifecycle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	kjson "sigs.k8s.io/json"

	kubedocument "scute.dev/kube/document"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/management"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Params is the content of spec.workflow.params. A workflow ignores parameters that it does not
// need, so the same parameters can create, upgrade and delete a cluster.
type Params struct {
	// Provider is the name of a provider. Default: manifests, which uses the templates below.
	Provider string        `json:"provider,omitempty"`
	Cluster  ClusterParams `json:"cluster"`
	// Management is the API server of the management cluster. management-upgrade and
	// management-delete require it. The workload workflows default to the run's own cluster.
	Management *access.ClusterRef          `json:"management,omitempty"`
	Bootstrap  *management.BootstrapParams `json:"bootstrap,omitempty"`
	// Components to install on the management cluster. The workload workflows install them on the
	// workload cluster.
	Components Components `json:"components,omitzero"`
	Networking Manifests  `json:"networking,omitzero"`
	// Configuration that management-create installs at its end.
	Configuration Manifests     `json:"configuration,omitzero"`
	Upgrade       UpgradeParams `json:"upgrade,omitzero"`
	// Access refers to the cluster's API server. Default: the one in Cluster API's kubeconfig.
	Access *access.ClusterRef `json:"access,omitempty"`
	// Pause makes the upgrade workflows pause other controllers on the management cluster, with the
	// inputs kustomizations, helmReleases, eksa, namespace and acknowledge of kind Pause.
	Pause json.RawMessage `json:"pause,omitempty"`
	// WriteConfig is where a creation or an upgrade writes the applied configuration at its end.
	WriteConfig *ConfigSink `json:"writeConfig,omitempty"`
	// Settings are for providers other than manifests.
	Settings json.RawMessage `json:"settings,omitempty"`

	isUpgrade bool
}

// ClusterParams is the content of params.cluster.
type ClusterParams struct {
	provider.Cluster
	// Template of the cluster's objects.
	Template *Source `json:"template,omitempty"`
}

// UpgradeParams is the content of params.upgrade.
type UpgradeParams struct {
	// Version of Kubernetes to upgrade to.
	Version string `json:"version,omitempty"`
	// Pivot moves a management cluster to a bootstrap cluster for its upgrade. If false, it is
	// upgraded in place. Default: true.
	Pivot *bool `json:"pivot,omitempty"`
	// Template of the upgraded cluster's objects. Default: cluster.template with the new version.
	Template *Source `json:"template,omitempty"`
	// Components and Networking replace the parameters of the same names in an upgrade.
	Components *Components `json:"components,omitempty"`
	Networking *Manifests  `json:"networking,omitempty"`
}

// Components are the controllers and objects that a management cluster needs to manage clusters.
type Components struct {
	// Providers are inputs of kind Providers: what clusterctl installs or upgrades.
	Providers json.RawMessage `json:"providers,omitempty"`
	Manifests
}

// Manifests are applied in order.
type Manifests struct {
	Manifests []Source `json:"manifests,omitempty"`
	// Wait until the objects are ready. Default: true.
	Wait *bool `json:"wait,omitempty"`
}

// Source is the source of a template.
type Source struct {
	// Inline is the text of the template.
	Inline string `json:"inline,omitempty"`
	// File is a path, only for local runs.
	File string `json:"file,omitempty"`
	// ConfigMapRef and SecretRef are in the run's namespace, on the run's own cluster.
	ConfigMapRef *Key `json:"configMapRef,omitempty"`
	SecretRef    *Key `json:"secretRef,omitempty"`
}

// Key selects one key of a ConfigMap or a Secret.
type Key struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

func (p *Params) template(upgrade bool) (field string, s *Source) {
	if upgrade && p.Upgrade.Template != nil {
		return "upgrade.template", p.Upgrade.Template
	}
	return "cluster.template", p.Cluster.Template
}

func (p *Params) components(upgrade bool) (field string, c *Components) {
	if upgrade && p.Upgrade.Components != nil {
		return "upgrade.components", p.Upgrade.Components
	}
	return "components", &p.Components
}

func (p *Params) networking(upgrade bool) (field string, m *Manifests) {
	if upgrade && p.Upgrade.Networking != nil {
		return "upgrade.networking", p.Upgrade.Networking
	}
	return "networking", &p.Networking
}

func (p *Params) eachSource(fn func(field string, s *Source)) {
	manifests := func(field string, m *Manifests) {
		for i := range m.Manifests {
			fn(fmt.Sprintf("%s.manifests[%d]", field, i), &m.Manifests[i])
		}
	}
	if p.Cluster.Template != nil {
		fn("cluster.template", p.Cluster.Template)
	}
	manifests("components", &p.Components.Manifests)
	manifests("networking", &p.Networking)
	manifests("configuration", &p.Configuration)
	if p.Upgrade.Template != nil {
		fn("upgrade.template", p.Upgrade.Template)
	}
	if p.Upgrade.Components != nil {
		manifests("upgrade.components", &p.Upgrade.Components.Manifests)
	}
	if p.Upgrade.Networking != nil {
		manifests("upgrade.networking", p.Upgrade.Networking)
	}
}

// ConfigSink selects where a configuration is written: to a file for a local run, or to a ConfigMap
// in the run's namespace.
type ConfigSink struct {
	File      string `json:"file,omitempty"`
	ConfigMap string `json:"configMap,omitempty"`
}

const paramsField = "spec.workflow.params"

// decode decodes strictly and continues after a problem, so that all problems are reported at once.
func decode(data json.RawMessage) (p Params, problems []workflow.Problem) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = json.RawMessage("{}")
	}
	if err := kubedocument.CheckJSON(data); err != nil {
		return p, []workflow.Problem{{Field: paramsField, Message: err.Error(), Remedy: "use fewer or shorter parameters"}}
	}
	strict, err := kjson.UnmarshalStrict(data, &p)
	for _, e := range strict {
		field := paramsField
		if wrong := kjson.FieldError(nil); errors.As(e, &wrong) {
			field += "." + wrong.FieldPath()
		}
		message, _, _ := strings.Cut(e.Error(), ` "`) // Problem.Field already contains the field
		problems = append(problems, workflow.Problem{Field: field, Message: message, Remedy: "remove it or correct its name"})
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
	case errors.As(err, &wrong):
		problems = append(problems, workflow.Problem{
			Field: paramsField + "." + withoutEmbedded(wrong.Field), Message: "it has the type " + wrong.Value,
			Remedy: "write " + task.TypeName(wrong.Type),
		})
	default:
		problems = append(problems, workflow.Problem{Field: paramsField, Message: err.Error(), Remedy: "correct the parameters"})
	}
	return p, problems
}

// withoutEmbedded removes the names of embedded Go types, which begin with a capital letter.
func withoutEmbedded(path string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(path, "."), func(name string) bool {
		return name != "" && unicode.IsUpper(rune(name[0]))
	}), ".")
}
