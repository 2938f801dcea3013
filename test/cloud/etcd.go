package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EtcdMember is a member of a workload cluster's etcd as the cloud has it, whoever can reach it.
type EtcdMember struct {
	Node string
	// ID differs for a member that was made again.
	ID string
	// Answers: whoever asks this member gets an answer.
	Answers bool
	// Leader: the last one to become leader.
	Leader bool
}

// Etcd returns the members that are in the member list of a workload cluster ("namespace/name"), by node. It costs no
// call to anybody, and may be asked as often as one likes.
func (c *Cloud) Etcd(ctx context.Context, cluster string) ([]EtcdMember, error) {
	pods := &corev1.PodList{}
	err := c.backend.GetResourceGroup(cluster).GetClient().List(ctx, pods,
		client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"component": "etcd", "tier": "control-plane"})
	if err != nil {
		return nil, fmt.Errorf("reading the etcd members of %s in the cloud: %w", cluster, err)
	}
	var members []EtcdMember
	leader, since := -1, time.Time{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if _, removed := pod.Annotations[cloudv1.EtcdMemberRemoved]; removed {
			continue
		}
		// The server breaks ties in the same way: the first in the list.
		if t, err := time.Parse(time.RFC3339, pod.Annotations[cloudv1.EtcdLeaderFromAnnotationName]); err == nil && t.After(since) {
			leader, since = len(members), t
		}
		members = append(members, EtcdMember{
			Node: strings.TrimPrefix(pod.Name, "etcd-"), ID: pod.Annotations[cloudv1.EtcdMemberIDAnnotationName],
			Answers: c.mux.HasEtcdMember(cluster, pod.Name),
		})
	}
	if leader >= 0 {
		members[leader].Leader = true
	}
	slices.SortFunc(members, func(a, b EtcdMember) int { return strings.Compare(a.Node, b.Node) })
	return members, nil
}

// SilenceEtcd cuts the etcd member on a node off from everybody; it stays in the member list. The provider, which would
// bring it back, cannot see it either until WakeEtcd, or until its machine is deleted.
func (c *Cloud) SilenceEtcd(cluster, node string) error {
	pod := "etcd-" + node
	c.mu.Lock()
	c.silent[cluster+" "+pod] = struct{}{}
	c.mu.Unlock()
	if err := c.mux.DeleteEtcdMember(cluster, pod); err != nil {
		return fmt.Errorf("silencing the etcd member on %s of %s: %w", node, cluster, err)
	}
	return nil
}

// WakeEtcd undoes SilenceEtcd: the provider brings the member back when it looks again.
func (c *Cloud) WakeEtcd(cluster, node string) { c.wake(cluster, "etcd-"+node) }

func (c *Cloud) wake(cluster, pod string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.silent, cluster+" "+pod)
}

var errSilent = errors.New("the machine does not answer: its etcd was silenced")

// hidden says whether an author must not see an object: the etcd pod of a silenced machine is none for the provider.
func (c *Cloud) hidden(author, cluster string, object client.Object) bool {
	if _, pod := object.(*corev1.Pod); !pod || author == WorkloadAPI {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, silent := c.silent[cluster+" "+object.GetName()]
	return silent
}
