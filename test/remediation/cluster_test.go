package remediation

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/inventory"
	"scute.dev/test/testbed"
)

// cluster is a workload cluster of one test.
type cluster struct {
	*testbed.Workload
	t    *testing.T
	spec testbed.Cluster
}

// remove deletes the cluster without waiting for it, so that other tests can use the controllers.
func (c *cluster) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	object := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	if err := client.IgnoreNotFound(shared.admin.Delete(ctx, object)); err != nil {
		c.t.Logf("deleting %s/%s: %v", c.Namespace, c.Name, err)
	}
}

// machines returns the machines of the control plane, or the workers, the oldest first.
func (c *cluster) machines(ctx context.Context, controlPlane bool) []clusterv1.Machine {
	c.t.Helper()
	list, err := c.list(ctx, controlPlane)
	harness.Must(c.t, err)
	return list
}

func (c *cluster) list(ctx context.Context, controlPlane bool) ([]clusterv1.Machine, error) {
	return inventory.Machines(ctx, shared.admin, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, controlPlane)
}

// kcp returns the control plane.
func (c *cluster) kcp(ctx context.Context) *controlplanev1.KubeadmControlPlane {
	c.t.Helper()
	list := &controlplanev1.KubeadmControlPlaneList{}
	harness.Must(c.t, shared.admin.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: c.Name}))
	if len(list.Items) != 1 {
		c.t.Fatalf("%d control planes in %s/%s", len(list.Items), c.Namespace, c.Name)
	}
	return &list.Items[0]
}

// poke triggers the control plane's controller, because it watches neither pods nor infrastructure machines.
func (c *cluster) poke(ctx context.Context) {
	c.t.Helper()
	c.annotate(ctx, c.kcp(ctx), "test.scute.dev/poked", time.Now().Format(time.RFC3339Nano))
}

// annotate sets an annotation. An empty value removes it.
func (c *cluster) annotate(ctx context.Context, object client.Object, key, value string) {
	c.t.Helper()
	v := "null"
	if value != "" {
		v = fmt.Sprintf("%q", value)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+key+`":`+v+`}}}`))
	harness.Must(c.t, shared.admin.Patch(ctx, object.DeepCopyObject().(client.Object), patch)) //nolint:forcetypeassert // it was one
}

// condition returns the status of a Machine's condition, or "".
func (c *cluster) condition(ctx context.Context, machine, condition string) string {
	c.t.Helper()
	m := &clusterv1.Machine{}
	harness.Must(c.t, shared.admin.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: machine}, m))
	if found := conditions.Get(m, condition); found != nil {
		return string(found.Status)
	}
	return ""
}

// awaitCondition triggers the control plane's controller until a Machine's condition has a status.
func (c *cluster) awaitCondition(ctx context.Context, machine, condition string, status metav1.ConditionStatus) {
	c.t.Helper()
	last := time.Time{}
	harness.Await(ctx, c.t, fmt.Sprintf("%s of machine %s is %s", condition, machine, status), func() string {
		is := c.condition(ctx, machine, condition)
		if is == string(status) {
			return ""
		}
		if time.Since(last) > time.Second {
			c.poke(ctx)
			last = time.Now()
		}
		return "it is " + is
	})
}
