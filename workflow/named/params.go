package named

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"scute.dev/workflow"
	"scute.dev/workflow/bootstrap"
	"scute.dev/workflow/provider"
	"scute.dev/workflow/provider/manifest"
	"scute.dev/workflow/task"
)

// Params are spec.workflow.params. A workflow takes what it needs and leaves the rest, so that the same parameters create,
// upgrade and delete a cluster.
type Params struct {
	// Provider by its name. Default: manifests, which is made of the templates in these parameters.
	Provider string `json:"provider,omitempty"`
	// Cluster is what shall be.
	Cluster ClusterParams `json:"cluster"`
	// Management is the API server of the management cluster. management-upgrade and management-delete need it; for the
	// workload workflows it is the run's own cluster unless it is set.
	Management *task.ClusterRef `json:"management,omitempty"`
	// Bootstrap is the temporary cluster of the management workflows.
	Bootstrap *bootstrap.Params `json:"bootstrap,omitempty"`
	// Components that a management cluster needs; in the workload workflows those of the workload cluster.
	Components manifest.Components `json:"components,omitzero"`
	// Networking of the cluster.
	Networking manifest.Manifests `json:"networking,omitzero"`
	// Configuration that management-create installs at its end.
	Configuration manifest.Manifests `json:"configuration,omitzero"`
	// Upgrade says what the upgrade workflows change.
	Upgrade UpgradeParams `json:"upgrade,omitzero"`
	// Access is where the API server of the cluster is reached, if not as Cluster API's kubeconfig says.
	Access *task.ClusterRef `json:"access,omitempty"`
	// Pause has the upgrade workflows keep the controllers of others still: the inputs kustomizations, helmReleases, eksa,
	// namespace and acknowledge of the kind Pause, on the management cluster.
	Pause json.RawMessage `json:"pause,omitempty"`
	// WriteConfig has the configuration that was applied written somewhere, when all else is done.
	WriteConfig *ConfigSink `json:"writeConfig,omitempty"`
	// Settings are for a provider of another kind.
	Settings json.RawMessage `json:"settings,omitempty"`
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
	manifest.UpgradeParams
}

// ConfigSink is where a configuration is written: one of a file of a local run, and a ConfigMap of the run's namespace.
type ConfigSink struct {
	File      string `json:"file,omitempty"`
	ConfigMap string `json:"configMap,omitempty"`
}

const at = "spec.workflow.params"

// decode reads the parameters strictly.
func decode(data json.RawMessage) (p Params, problems []workflow.Problem) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&p)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return p, nil
		}
		err = errors.New("there is more than one object")
	}
	var wrong *json.UnmarshalTypeError
	switch name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); {
	case unknown:
		return p, []workflow.Problem{{Field: at + "." + strings.Trim(name, `"`), Message: "there is no such parameter", Remedy: "remove it or correct its name"}}
	case errors.As(err, &wrong):
		return p, []workflow.Problem{{Field: at + "." + wrong.Field, Message: "it is a " + wrong.Value, Remedy: fmt.Sprintf("give a %s", wrong.Type)}}
	default:
		return p, []workflow.Problem{{Field: at, Message: err.Error(), Remedy: "correct it"}}
	}
}
