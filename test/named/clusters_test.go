package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// exists returns a function that reports whether a side has the cluster.
func exists(side *testbed.Side, namespace, name string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		return side.Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &clusterv1.Cluster{}) == nil
	}
}

// goes returns a function that reports whether the cluster is being deleted.
func goes(side *testbed.Side, namespace, name string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		c := &clusterv1.Cluster{}
		err := side.Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, c)
		return err == nil && !c.DeletionTimestamp.IsZero()
	}
}

// rolls returns a function that reports whether the control plane's machines are being replaced with machines of a
// version.
func rolls(side *testbed.Side, namespace, name, version string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		cp := &controlplanev1.KubeadmControlPlane{}
		err := side.Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name + "-control-plane"}, cp)
		if err != nil || cp.Spec.Version != version {
			return false
		}
		return slices.Contains(versions(ctx, side, namespace, name), version)
	}
}

// versions returns the versions of the machines.
func versions(ctx context.Context, side *testbed.Side, namespace, name string) (all []string) {
	list := &clusterv1.MachineList{}
	if err := side.Client().List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
		return nil
	}
	for i := range list.Items {
		all = append(all, list.Items[i].Spec.Version)
	}
	return all
}

// written returns the version in a ConfigMap of the in-memory provider.
func written(ctx context.Context, t *testing.T, c client.Client, name string) string {
	t.Helper()
	m := &corev1.ConfigMap{}
	harness.Must(t, c.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: name}, m))
	return m.Data["version"]
}

// left returns the kinds of objects of a cluster that a side still has.
func left(ctx context.Context, t *testing.T, side *testbed.Side, namespace string) (kinds []string) {
	t.Helper()
	for _, list := range []client.ObjectList{&clusterv1.ClusterList{}, &clusterv1.MachineList{}, &controlplanev1.KubeadmControlPlaneList{}, &clusterv1.MachineDeploymentList{}} {
		harness.Must(t, side.Client().List(ctx, list, client.InNamespace(namespace)))
		if n := listLen(list); n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d in a %T", n, list))
		}
	}
	return kinds
}

func listLen(list client.ObjectList) int {
	switch l := list.(type) {
	case *clusterv1.ClusterList:
		return len(l.Items)
	case *clusterv1.MachineList:
		return len(l.Items)
	case *controlplanev1.KubeadmControlPlaneList:
		return len(l.Items)
	case *clusterv1.MachineDeploymentList:
		return len(l.Items)
	}
	return 0
}
