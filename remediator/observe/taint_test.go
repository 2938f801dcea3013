package observe

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// oneNode is an API server with one Node.
type oneNode struct {
	node    *corev1.Node
	written *corev1.Node // nil: nothing was
}

func (o *oneNode) Get(_ context.Context, segments ...string) (code int, body []byte, err error) {
	if o.node == nil || strings.Join(segments, "/") != "api/v1/nodes/"+o.node.Name {
		return http.StatusNotFound, nil, nil
	}
	body, err = json.Marshal(o.node)
	return http.StatusOK, body, err
}

func (o *oneNode) Patch(_ context.Context, patch []byte, _ ...string) (code int, err error) {
	o.written = &corev1.Node{}
	if err := json.Unmarshal(patch, o.written); err != nil || o.written.ResourceVersion != o.node.ResourceVersion {
		return http.StatusConflict, err
	}
	return http.StatusOK, nil
}

// TestSetTaint: a Node is tainted only if nothing is heard of it and it is the machine's, and of taints only scute's own is taken off.
func TestSetTaint(t *testing.T) {
	theirs := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	other := corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoSchedule}
	for name, c := range map[string]struct {
		ready    corev1.ConditionStatus
		provider string
		before   []corev1.Taint
		out      bool
		after    []corev1.Taint // nil: nothing is written
		refused  string
	}{
		"set":                  {ready: corev1.ConditionUnknown, before: []corev1.Taint{other}, out: true, after: []corev1.Taint{other, *ours()}},
		"set already":          {ready: corev1.ConditionUnknown, before: []corev1.Taint{*ours()}, out: true},
		"set by another":       {ready: corev1.ConditionUnknown, before: []corev1.Taint{theirs}, out: true},
		"another machine":      {ready: corev1.ConditionUnknown, provider: "cloud:///2", out: true, refused: "not of the machine's"},
		"it reports well":      {ready: corev1.ConditionTrue, out: true, refused: "reports again"},
		"it reports unhealthy": {ready: corev1.ConditionFalse, out: true, refused: "reports again"},
		"taken off":            {ready: corev1.ConditionTrue, before: []corev1.Taint{other, *ours()}, after: []corev1.Taint{other}},
		"the only one":         {ready: corev1.ConditionTrue, before: []corev1.Taint{*ours()}, after: []corev1.Taint{}},
		"not set":              {ready: corev1.ConditionTrue, before: []corev1.Taint{other}},
		"another's is left":    {ready: corev1.ConditionTrue, before: []corev1.Taint{theirs}},
	} {
		t.Run(name, func(t *testing.T) {
			api := &oneNode{node: &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "7"},
				Spec:       corev1.NodeSpec{ProviderID: "cloud:///1", Taints: c.before},
				Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: c.ready}}},
			}}
			if c.provider != "" {
				api.node.Spec.ProviderID = c.provider
			}
			err := setTaint(t.Context(), api, "n", "cloud:///1", c.out)
			switch {
			case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
				t.Errorf("it says %v", err)
			case c.refused == "" && err != nil:
				t.Error(err)
			case (api.written != nil) != (c.after != nil):
				t.Errorf("written: %v", api.written)
			case api.written != nil && !slices.Equal(api.written.Spec.Taints, c.after):
				t.Errorf("its taints are %v", api.written.Spec.Taints)
			}
		})
	}
	if err := setTaint(t.Context(), &oneNode{}, "n", "cloud:///1", false); err != nil {
		t.Errorf("of a Node that is gone it says %v", err)
	}
}
