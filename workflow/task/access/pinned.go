package access

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/workflow/task"
)

// Pinned records which cluster a task used. The kubeconfig in the Secret may later be replaced by
// that of another cluster, where the same names denote other objects.
type Pinned struct {
	ClusterRef
	// UID is the UID of namespace kube-system on the Secret's cluster; "" if it could not be read.
	UID string `json:"uid,omitempty"`
	// Execution is the number of the execution that used the cluster.
	Execution int `json:"execution,omitempty"`
}

// errOtherCluster is returned if a task would change its cluster, because the undo would then not
// find the work on the earlier cluster.
var errOtherCluster = errors.New("with.cluster: it has changed, but an earlier attempt used another cluster: restore it, or roll back the task first")

// Pin opens a cluster, and returns the identity that an attempt must record before it acts. was is
// the identity that an earlier attempt recorded, if acted is set. In that case Pin rejects inputs
// that name another cluster. Within the same execution it also rejects the same inputs if they now
// lead to another cluster. In a later execution it accepts this, because the cluster may have been
// recreated.
func (cs *Clusters) Pin(ctx context.Context, c *task.Call, ref ClusterRef, was Pinned, acted bool) (*Cluster, Pinned, error) {
	if !acted {
		was = Pinned{ClusterRef: ref}
	}
	if !reflect.DeepEqual(was.ClusterRef, ref) {
		return nil, was, task.Final(errOtherCluster)
	}
	cl, err := cs.Open(ctx, c, ref)
	if err != nil || ref.KubeconfigSecretRef == nil {
		return cl, was, err
	}
	if was.UID != "" && was.Execution == c.Execution {
		return cl, was, cl.checkIdentity(ctx, was)
	}
	uid, err := cl.Kube.NamespaceUID(ctx, metav1.NamespaceSystem)
	switch {
	case err == nil:
		was.UID, was.Execution = uid, c.Execution
	case was.UID != "": // without the UID, the undo could change another cluster
		return cl, was, identityError(err)
	}
	return cl, was, nil // later requests fail if the cluster is unreachable
}

func identityError(err error) error {
	return fmt.Errorf("checking that it is still the cluster that the task used: %w", FinalIfRefused(err))
}

// OpenPinned opens the recorded cluster. It fails if the Secret now contains the kubeconfig of another cluster.
func (cs *Clusters) OpenPinned(ctx context.Context, c *task.Call, was Pinned) (*Cluster, error) {
	cl, err := cs.Open(ctx, c, was.ClusterRef)
	if err != nil || was.UID == "" {
		return cl, err
	}
	return cl, cl.checkIdentity(ctx, was)
}

func (cl *Cluster) checkIdentity(ctx context.Context, was Pinned) error {
	uid, err := cl.Kube.NamespaceUID(ctx, metav1.NamespaceSystem)
	if err != nil {
		return identityError(err)
	}
	if uid != was.UID {
		return task.Final(fmt.Errorf("with.cluster.kubeconfigSecretRef: Secret %s now has the kubeconfig of another cluster (at %s) than the task "+
			"used: the UID of namespace kube-system was %s and is %s. "+
			"Restore the kubeconfig of the earlier cluster in the Secret and decide `retry` or `retry-undo`; if that cluster no longer exists, `succeed` "+
			"or `mark-undone`", was.KubeconfigSecretRef.Name, cl.Config.Host, was.UID, uid))
	}
	return nil
}
