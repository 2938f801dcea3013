package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// ours is the taint that scute sets. Kubernetes looks at key and effect; by the value scute knows its own.
func ours() *corev1.Taint {
	return &corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: object.OwnGroup, Effect: corev1.TaintEffectNoExecute}
}

// nodeAPI is what is needed of the API server of a workload cluster.
type nodeAPI interface {
	Get(ctx context.Context, segments ...string) (code int, body []byte, err error)
	Patch(ctx context.Context, patch []byte, segments ...string) (code int, err error)
}

// SetOutOfService taints a Node of a workload cluster out-of-service, or takes the taint off if it is scute's. A Node that is not there
// has none. It is tainted only while nothing is heard of it, and if it is that of the provider's machine.
func (o *Observer) SetOutOfService(ctx context.Context, cluster types.NamespacedName, node, providerID string, out bool) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	api, err := o.nodeReader(ctx, cluster)
	if err != nil {
		return err
	}
	defer api.Close()
	if err := setTaint(ctx, api, node, providerID, out); err != nil {
		return fmt.Errorf("tainting node %s of cluster %s: %w", node, cluster, err)
	}
	return nil
}

// tainted is what is read of a Node, and written.
type tainted struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		ProviderID string         `json:"providerID,omitempty"`
		Taints     []corev1.Taint `json:"taints"`
	} `json:"spec"`
}

func setTaint(ctx context.Context, api nodeAPI, name, providerID string, out bool) error {
	at := []string{"api", "v1", "nodes", name}
	code, raw, err := api.Get(ctx, at...)
	if err != nil || code == http.StatusNotFound {
		return err
	}
	if err := accepted(code); err != nil {
		return err
	}
	var node tainted
	if err := json.Unmarshal(raw, &node); err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	had := node.Spec.Taints
	others := slices.DeleteFunc(slices.Clone(had), func(t corev1.Taint) bool { return t.MatchTaint(ours()) && t.Value == ours().Value })
	switch there := slices.ContainsFunc(had, func(t corev1.Taint) bool { return t.MatchTaint(ours()) }); {
	case out && there, !out && len(others) == len(had):
		return nil
	case out && node.Spec.ProviderID != providerID:
		return fmt.Errorf("it is of %q, and not of the machine's %q", node.Spec.ProviderID, providerID)
	case out && heard(raw):
		return errors.New("it reports again")
	case out:
		others = append(others, *ours())
	}
	node.Spec.ProviderID, node.Spec.Taints = "", others
	patch, err := json.Marshal(node)
	if err != nil {
		return fmt.Errorf("preparing its taints: %w", err)
	}
	code, err = api.Patch(ctx, patch, at...)
	if err != nil {
		return err
	}
	return accepted(code)
}

func accepted(code int) error {
	if code != http.StatusOK {
		return fmt.Errorf("the API server answers %d %s", code, http.StatusText(code))
	}
	return nil
}

// heard says that a node's kubelet reports, or that this is unknown.
func heard(raw []byte) bool {
	said, err := saidOf(raw, nil)
	return err != nil || said.Conditions[string(corev1.NodeReady)].Status != object.Unknown
}
