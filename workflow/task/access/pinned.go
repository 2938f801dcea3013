package access

import (
	"context"
	"fmt"
	"reflect"

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

// Pin is what to record of the cluster, before an attempt acts on it. was is what an earlier attempt recorded: an attempt of the same execution
// fails on another cluster. When a task runs again, the cluster may have been made again.
func (cl *Cluster) Pin(ctx context.Context, c *task.Call, ref ClusterRef, was Pinned) (Pinned, error) {
	if ref.KubeconfigSecretRef == nil {
		return Pinned{ClusterRef: ref}, nil
	}
	if was.UID != "" && was.Execution == c.Execution && reflect.DeepEqual(was.ClusterRef, ref) {
		return was, cl.is(ctx, was)
	}
	uid, err := cl.Kube.NamespaceUID(ctx, "kube-system")
	if err != nil {
		return Pinned{ClusterRef: ref}, nil //nolint:nilerr // it is away, or may not be asked: what follows says so, if it matters
	}
	return Pinned{ClusterRef: ref, UID: uid, Execution: c.Execution}, nil
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
	uid, err := cl.Kube.NamespaceUID(ctx, "kube-system")
	if err != nil {
		return fmt.Errorf("asking whether it is still the cluster that the task has worked on: %w", Refusal(err))
	}
	if uid != was.UID {
		return task.Final(fmt.Errorf("with.cluster.kubeconfigSecretRef: Secret %s leads to another cluster (at %s) than the one that the task has worked on: namespace kube-system had UID %s and has %s. "+
			"put the kubeconfig of that cluster back into the Secret and decide `retry` or `retry-undo`; if that cluster is gone, `succeed` or `mark-undone`", was.KubeconfigSecretRef.Name, cl.Config.Host, was.UID, uid))
	}
	return nil
}
