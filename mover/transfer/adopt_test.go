package transfer

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/object"
)

// TestAdoptable checks which existing objects of the target may be used instead of a copy. Names and labels that tools
// write are ignored.
func TestAdoptable(t *testing.T) {
	made := func(apiVersion, kind string, labels, annotations, rest map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "x", "namespace": "fleet", "labels": labels, "annotations": annotations},
		}}
		for key, v := range rest {
			u.Object[key] = v
		}
		return u
	}
	type m = map[string]any
	argo := func(side string) m { return m{"argocd.argoproj.io/tracking-id": side} }
	const core = "cluster.x-k8s.io/v1beta2"
	for name, c := range map[string]struct {
		want, have *unstructured.Unstructured
		same       bool
	}{
		"a class that Argo CD keeps on both sides": {made(core, "ClusterClass", m{"app.kubernetes.io/instance": "n"}, argo("n"), m{"spec": m{"a": "b"}}), made(core, "ClusterClass", nil, argo("s"), m{"spec": m{"a": "b"}}), true},
		"another class":                  {made(core, "ClusterClass", nil, nil, m{"spec": m{"a": "b"}}), made(core, "ClusterClass", nil, nil, m{"spec": m{"a": "c"}}), false},
		"a shared Secret":                {made("v1", "Secret", nil, nil, m{"data": m{"k": "dg=="}}), made("v1", "Secret", nil, nil, m{"data": m{"k": "dg=="}}), true},
		"another Secret":                 {made("v1", "Secret", nil, nil, m{"data": m{"k": "dg=="}}), made("v1", "Secret", nil, nil, m{"data": m{"k": "eA=="}}), false},
		"a label that Cluster API reads": {made("v1", "ConfigMap", m{"cluster.x-k8s.io/cluster-name": "a"}, nil, nil), made("v1", "ConfigMap", nil, nil, nil), false},
		"a Cluster":                      {made(core, "Cluster", nil, nil, nil), made(core, "Cluster", nil, nil, nil), false},
	} {
		if same, why := isAdoptable(false, object.Observe(c.want).Ref, c.want, c.have); same != c.same {
			t.Errorf("%s: adoptable = %t, reason %s", name, same, why)
		}
	}
}
