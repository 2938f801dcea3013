package lifecycle

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode"

	kjson "sigs.k8s.io/json"

	kubedocument "scute.dev/kube/document"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/bootstrap"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/provider/manifest"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/task/inputs"
)

// Params are spec.workflow.params. A workflow ignores parameters that it does not need, so that the same parameters create,
// upgrade and delete a cluster.
type Params struct {
	// Provider is the name of a provider. Default: manifests, which uses the templates in these parameters.
	Provider string `json:"provider,omitempty"`
	// Cluster is the specification of the cluster.
	Cluster ClusterParams `json:"cluster"`
	// Management is the API server of the management cluster. management-upgrade and management-delete need it; for the
	// workload workflows it is the run's own cluster unless it is set.
	Management *access.ClusterRef `json:"management,omitempty"`
	// Bootstrap is the temporary cluster of the management workflows.
	Bootstrap *bootstrap.Params `json:"bootstrap,omitempty"`
	// Components that a management cluster needs; in the workload workflows those of the workload cluster.
	Components manifest.Components `json:"components,omitzero"`
	// Networking of the cluster.
	Networking manifest.Manifests `json:"networking,omitzero"`
	// Configuration that management-create installs at its end.
	Configuration manifest.Manifests `json:"configuration,omitzero"`
	// Upgrade are the parameters of the upgrade workflows.
	Upgrade UpgradeParams `json:"upgrade,omitzero"`
	// Access is the API server of the cluster, if it differs from that in Cluster API's kubeconfig.
	Access *access.ClusterRef `json:"access,omitempty"`
	// Pause makes the upgrade workflows pause other controllers on the management cluster. It has the inputs kustomizations,
	// helmReleases, eksa, namespace and acknowledge of the kind Pause.
	Pause json.RawMessage `json:"pause,omitempty"`
	// WriteConfig is where the applied configuration is written at the end of a creation or an upgrade.
	WriteConfig *ConfigSink `json:"writeConfig,omitempty"`
	// Settings are for providers other than manifests.
	Settings json.RawMessage `json:"settings,omitempty"`

	isUpgrade bool // the workflow is an upgrade
}

// ClusterParams are params.cluster.
type ClusterParams struct {
	provider.Cluster
	manifest.ClusterParams
}

// UpgradeParams are params.upgrade.
type UpgradeParams struct {
	// Version of Kubernetes to upgrade to.
	Version string `json:"version,omitempty"`
	// Pivot moves a management cluster to a bootstrap cluster for its upgrade. If false, it upgrades itself. Default: true.
	Pivot *bool `json:"pivot,omitempty"`
	manifest.UpgradeParams
}

// ConfigSink is where a configuration is written: to a file of a local run, or to a ConfigMap of the run's namespace.
type ConfigSink struct {
	File      string `json:"file,omitempty"`
	ConfigMap string `json:"configMap,omitempty"`
}

const paramsField = "spec.workflow.params"

// decode decodes the parameters strictly. It continues after a problem, so that all problems are reported at once.
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
		message, _, _ := strings.Cut(e.Error(), ` "`) // Problem.Field has the field
		problems = append(problems, workflow.Problem{Field: field, Message: message, Remedy: "remove it or correct its name"})
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
	case errors.As(err, &wrong):
		problems = append(problems, workflow.Problem{
			Field: paramsField + "." + withoutEmbedded(wrong.Field), Message: "it has the type " + wrong.Value,
			Remedy: "write " + inputs.TypeName(wrong.Type),
		})
	default:
		problems = append(problems, workflow.Problem{Field: paramsField, Message: err.Error(), Remedy: "correct the parameters"})
	}
	return p, problems
}

// withoutEmbedded returns the path of a field without the names of embedded Go types. These begin with a capital letter, as no
// parameter does.
func withoutEmbedded(path string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(path, "."), func(name string) bool {
		return name != "" && unicode.IsUpper(rune(name[0]))
	}), ".")
}
