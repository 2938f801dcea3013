package testbed

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/cloud"
)

// BreakNode sets the node's Ready condition to False (the kubelet reports a problem) or Unknown (the kubelet is
// silent). The cloud does not reset it: see RestoreNode.
func (w *Workload) BreakNode(ctx context.Context, node string, ready corev1.ConditionStatus) error {
	return w.setReady(ctx, node, ready, "BrokenByTestBed")
}

// RestoreNode sets the node's Ready condition to True.
func (w *Workload) RestoreNode(ctx context.Context, node string) error {
	return w.setReady(ctx, node, corev1.ConditionTrue, "KubeletReady")
}

func (w *Workload) setReady(ctx context.Context, name string, ready corev1.ConditionStatus, reason string) error {
	now := metav1.NewTime(time.Now())
	return w.SetNodeCondition(ctx, name, corev1.NodeCondition{Type: corev1.NodeReady, Status: ready, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now})
}

// SetNodeCondition sets a condition of a Node, as a node problem detector does. The cloud does not reset it.
func (w *Workload) SetNodeCondition(ctx context.Context, name string, condition corev1.NodeCondition) error {
	c, err := w.Client(ctx)
	if err != nil {
		return err
	}
	node := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return fmt.Errorf("setting node %s of %s/%s to %s=%s: %w", name, w.Namespace, w.Name, condition.Type, condition.Status, err)
	}
	original := node.DeepCopy()
	found := false
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == condition.Type {
			node.Status.Conditions[i], found = condition, true
		}
	}
	if !found {
		node.Status.Conditions = append(node.Status.Conditions, condition)
	}
	// The in-memory API has no status subresource for nodes.
	if err := c.Patch(ctx, node, client.MergeFrom(original)); err != nil {
		return fmt.Errorf("setting node %s of %s/%s to %s=%s: %w", name, w.Namespace, w.Name, condition.Type, condition.Status, err)
	}
	return nil
}

// SetNodeTaint taints a Node, as a node termination handler does.
func (w *Workload) SetNodeTaint(ctx context.Context, name string, taint corev1.Taint) error {
	c, err := w.Client(ctx)
	if err != nil {
		return err
	}
	node := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return fmt.Errorf("tainting node %s of %s/%s %s: %w", name, w.Namespace, w.Name, taint.Key, err)
	}
	original := node.DeepCopy()
	node.Spec.Taints = append(node.Spec.Taints, taint)
	if err := c.Patch(ctx, node, client.MergeFrom(original)); err != nil {
		return fmt.Errorf("tainting node %s of %s/%s %s: %w", name, w.Namespace, w.Name, taint.Key, err)
	}
	return nil
}

// DeleteNode deletes a Node, as a user does. Its kubelet continues, and does not create it again.
func (w *Workload) DeleteNode(ctx context.Context, name string) error {
	c, err := w.Client(ctx)
	if err != nil {
		return err
	}
	w.bed.cloud.KeepNodeDeleted(w.Namespace+"/"+w.Name, name)
	if err := c.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return fmt.Errorf("deleting node %s of %s/%s: %w", name, w.Namespace, w.Name, err)
	}
	return nil
}

// BreakEtcdMember makes the etcd member on that node answer as if it had been removed from the etcd cluster.
func (w *Workload) BreakEtcdMember(ctx context.Context, node string) error {
	return w.changePod(ctx, "etcd-"+node, func(pod *corev1.Pod) {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[cloudv1.EtcdMemberRemoved] = ""
	})
}

// AddEtcdNamesake adds a dead member to etcd's list that has the name of the member on that node, as an earlier machine
// with the same host name could leave behind.
func (w *Workload) AddEtcdNamesake(ctx context.Context, node string) error {
	c, err := w.Client(ctx)
	if err != nil {
		return err
	}
	pod, earlier := &corev1.Pod{}, "earlier-"+node
	if err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "etcd-" + node}, pod); err != nil {
		return fmt.Errorf("adding a namesake of etcd member %s of %s/%s: %w", node, w.Namespace, w.Name, err)
	}
	namesake := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: "etcd-" + earlier, Labels: pod.Labels,
		Annotations: map[string]string{
			cloudv1.EtcdClusterIDAnnotationName: pod.Annotations[cloudv1.EtcdClusterIDAnnotationName],
			cloudv1.EtcdMemberIDAnnotationName:  "1", cloud.MemberNameAnnotation: node,
		},
	}}
	if err := c.Create(ctx, namesake); err != nil {
		return fmt.Errorf("adding a namesake of etcd member %s of %s/%s: %w", node, w.Namespace, w.Name, err)
	}
	return w.CutEtcdOff(earlier)
}

// RestoreEtcdMember reverts BreakEtcdMember.
func (w *Workload) RestoreEtcdMember(ctx context.Context, node string) error {
	return w.changePod(ctx, "etcd-"+node, func(pod *corev1.Pod) { delete(pod.Annotations, cloudv1.EtcdMemberRemoved) })
}

// BreakEtcdPod sets the Ready condition of the etcd pod on that node to False. The member still answers.
func (w *Workload) BreakEtcdPod(ctx context.Context, node string) error {
	return w.changePod(ctx, "etcd-"+node, func(pod *corev1.Pod) { setPodReady(pod, corev1.ConditionFalse) })
}

// RestoreEtcdPod reverts BreakEtcdPod.
func (w *Workload) RestoreEtcdPod(ctx context.Context, node string) error {
	return w.changePod(ctx, "etcd-"+node, func(pod *corev1.Pod) { setPodReady(pod, corev1.ConditionTrue) })
}

func setPodReady(pod *corev1.Pod, status corev1.ConditionStatus) {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			pod.Status.Conditions[i].Status = status
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: status})
}

// StopAPIServer stops the API server on that node permanently and makes its pod not ready. The other nodes serve the
// cluster's API.
func (w *Workload) StopAPIServer(ctx context.Context, node string) error {
	if err := w.bed.cloud.SilenceAPIServer(w.Namespace+"/"+w.Name, node); err != nil {
		return err
	}
	return w.changePod(ctx, "kube-apiserver-"+node, func(pod *corev1.Pod) { setPodReady(pod, corev1.ConditionFalse) })
}

// changePod replaces a pod. It must not patch it: the in-memory API would store the pod untyped, and every later call
// to etcd would fail.
func (w *Workload) changePod(ctx context.Context, name string, change func(*corev1.Pod)) error {
	c, err := w.Client(ctx)
	if err != nil {
		return err
	}
	pod := &corev1.Pod{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, pod); err != nil {
		return fmt.Errorf("changing pod %s of %s/%s: %w", name, w.Namespace, w.Name, err)
	}
	change(pod)
	if err := c.Update(ctx, pod); err != nil {
		return fmt.Errorf("changing pod %s of %s/%s: %w", name, w.Namespace, w.Name, err)
	}
	return nil
}
