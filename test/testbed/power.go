package testbed

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/cloud"
)

// PowerOff turns off a control plane's machine: its kubelet stops, its node's Ready condition becomes Unknown, and its
// etcd member stays in the member list but does not answer. If it was the leader, another member is elected.
func (w *Workload) PowerOff(ctx context.Context, node string) error {
	if err := w.CutEtcdOff(node); err != nil {
		return err
	}
	if err := w.elect(ctx, node); err != nil {
		return err
	}
	return w.StopKubelet(ctx, node)
}

// PowerOn reverts PowerOff.
func (w *Workload) PowerOn(ctx context.Context, node string) error {
	if err := w.RejoinEtcd(ctx, node); err != nil {
		return err
	}
	return w.StartKubelet(ctx, node)
}

// StopKubelet stops only the kubelet of a node: the node's Ready condition becomes Unknown, and port-forwards to its
// pods and commands in them fail. Its etcd member continues.
func (w *Workload) StopKubelet(ctx context.Context, node string) error {
	w.bed.cloud.StopKubelet(w.Namespace+"/"+w.Name, node)
	return w.BreakNode(ctx, node, corev1.ConditionUnknown)
}

// StartKubelet reverts StopKubelet.
func (w *Workload) StartKubelet(ctx context.Context, node string) error {
	w.bed.cloud.StartKubelet(w.Namespace+"/"+w.Name, node)
	return w.RestoreNode(ctx, node)
}

// OpenClientPort makes the etcd member of a control plane's machine listen on the address of the machine, and adds the
// address to the Machine. A process on this computer then reaches the member without the kubelet. The machine must have
// the name of its node. It needs Linux.
func (w *Workload) OpenClientPort(ctx context.Context, node string) error {
	address, err := w.bed.cloud.OpenClientPort(w.Namespace+"/"+w.Name, node)
	if err != nil {
		return err
	}
	side, err := w.side(ctx)
	if err != nil {
		return err
	}
	machine := &infrav1.DevMachine{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: node}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"addresses":[{"type":"InternalIP","address":"`+address+`"}]}}`))
	if err := side.client.Status().Patch(ctx, machine, patch); err != nil {
		return fmt.Errorf("setting the address of machine %s/%s: %w", w.Namespace, node, err)
	}
	return nil
}

// CutEtcdOff makes the etcd member of a node stop answering. It changes neither the node's conditions nor the leader.
func (w *Workload) CutEtcdOff(node string) error {
	return w.bed.cloud.SilenceEtcd(w.Namespace+"/"+w.Name, node)
}

// RejoinEtcd reverts CutEtcdOff, and makes the provider reconcile the machine, which has the name of its node.
func (w *Workload) RejoinEtcd(ctx context.Context, node string) error {
	w.bed.cloud.WakeEtcd(w.Namespace+"/"+w.Name, node)
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"test.scute.dev/woken":"`+time.Now().Format(time.RFC3339Nano)+`"}}}`))
	side, err := w.side(ctx)
	if err != nil {
		return err
	}
	machine := &infrav1.DevMachine{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: node}}
	if err := side.client.Patch(ctx, machine, patch); err != nil {
		return fmt.Errorf("waking machine %s/%s: %w", w.Namespace, node, err)
	}
	return nil
}

// Lead makes the etcd member of a node the leader. The in-memory etcd distinguishes terms by the second in which they
// began, so this term gets its own second: if a client moves the leadership after Lead has returned, a later term
// begins.
func (w *Workload) Lead(ctx context.Context, node string) error {
	if err := nextSecond(ctx); err != nil {
		return fmt.Errorf("waiting to make node %s of %s/%s the leader: %w", node, w.Namespace, w.Name, err)
	}
	err := w.changePod(ctx, "etcd-"+node, func(pod *corev1.Pod) {
		pod.Annotations[cloudv1.EtcdLeaderFromAnnotationName] = time.Now().Format(time.RFC3339)
	})
	if err != nil {
		return err
	}
	return nextSecond(ctx)
}

// nextSecond waits until the next second of the clock begins.
func nextSecond(ctx context.Context) error {
	now := time.Now()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(now.Truncate(time.Second).Add(time.Second).Sub(now)):
		return nil
	}
}

// elect makes another member the leader if this one is.
func (w *Workload) elect(ctx context.Context, node string) error {
	members, err := w.bed.cloud.Etcd(ctx, w.Namespace+"/"+w.Name)
	if err != nil {
		return err
	}
	lost, other := false, ""
	for _, m := range members {
		if m.Node == node {
			lost = m.Leader
		} else if m.Answers {
			other = m.Node
		}
	}
	if !lost || other == "" {
		return nil
	}
	return w.Lead(ctx, other)
}

// side returns the side that manages this cluster.
func (w *Workload) side(ctx context.Context) (*Side, error) {
	for _, s := range w.bed.sides {
		err := s.client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Name}, &clusterv1.Cluster{})
		if err == nil {
			return s, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("finding the side that manages %s/%s: %w", w.Namespace, w.Name, err)
		}
	}
	return nil, fmt.Errorf("finding the side that manages %s/%s: none does", w.Namespace, w.Name)
}

// SetEtcdDatabase sets what the etcd member on a node reports about its database.
func (w *Workload) SetEtcdDatabase(node string, d cloud.Database) {
	w.bed.cloud.SetDatabase(w.Namespace+"/"+w.Name, node, d)
}
