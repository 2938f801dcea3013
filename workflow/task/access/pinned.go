package access

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/workflow/task"
)

// Pinned is the cluster that a task works on, as its record keeps it. A Secret may lead to another cluster later: names would mean other objects
// there.
type Pinned struct {
	ClusterRef
	// UID of namespace kube-system of the cluster that the Secret leads to; "" if it could not be asked.
	UID string `json:"uid,omitempty"`
	// Execution that worked on it.
	Execution int `json:"execution,omitempty"`
}

// errElsewhere: the record is of one cluster, and the undo of what was done on the other would be lost.
var errElsewhere = errors.New("with.cluster: it was changed after an earlier attempt had worked on another cluster: put it back, or roll the task back first")

// Pin opens a cluster, and says what to record of it before an attempt acts on it. was is what an earlier attempt recorded, if it has acted:
// inputs that lead elsewhere are refused, and an attempt of the same execution fails on another cluster. When a task runs again, the cluster may
// have been made again.
func (cs *Clusters) Pin(ctx context.Context, c *task.Call, ref ClusterRef, was Pinned, acted bool) (*Cluster, Pinned, error) {
	if !acted {
		was = Pinned{ClusterRef: ref}
	}
	if !reflect.DeepEqual(was.ClusterRef, ref) {
		return nil, was, task.Final(errElsewhere)
	}
	cl, err := cs.Open(ctx, c, ref)
	if err != nil || ref.KubeconfigSecretRef == nil {
		return cl, was, err
	}
	if was.UID != "" && was.Execution == c.Execution {
		return cl, was, cl.is(ctx, was)
	}
	uid, err := cl.Kube.NamespaceUID(ctx, metav1.NamespaceSystem)
	switch {
	case err == nil:
		was.UID, was.Execution = uid, c.Execution
	case was.UID != "": // without it the undo could do to another cluster what is recorded of this one
		return cl, was, unasked(err)
	}
	return cl, was, nil // if it is away, or may not be asked, what follows says so, if it matters
}

func unasked(err error) error {
	return fmt.Errorf("asking whether it is still the cluster that the task has worked on: %w", Refusal(err))
}

// OpenPinned opens the cluster of a record, and no other one.
func (cs *Clusters) OpenPinned(ctx context.Context, c *task.Call, was Pinned) (*Cluster, error) {
	cl, err := cs.Open(ctx, c, was.ClusterRef)
	if err != nil || was.UID == "" {
		return cl, err
	}
	return cl, cl.is(ctx, was)
}

// is fails if the cluster is not the one that was recorded, or cannot be asked.
func (cl *Cluster) is(ctx context.Context, was Pinned) error {
	uid, err := cl.Kube.NamespaceUID(ctx, metav1.NamespaceSystem)
	if err != nil {
		return unasked(err)
	}
	if uid != was.UID {
		return task.Final(fmt.Errorf("with.cluster.kubeconfigSecretRef: Secret %s leads to another cluster (at %s) than the one that the task has worked on: namespace kube-system had UID %s and has %s. "+
			"put the kubeconfig of that cluster back into the Secret and decide `retry` or `retry-undo`; if that cluster is gone, `succeed` or `mark-undone`", was.KubeconfigSecretRef.Name, cl.Config.Host, was.UID, uid))
	}
	return nil
}
