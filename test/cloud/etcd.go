package cloud

import (
	"cmp"
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

// MemberNameAnnotation on an etcd pod sets another name of its member than that of the node.
const MemberNameAnnotation = "test.scute.dev/etcd-member-name"

// EtcdMember is a member of a workload cluster's etcd as the cloud has it, even if scute cannot reach it.
type EtcdMember struct {
	Node string
	// Name is the name in the member list: the node's name, unless the pod has MemberNameAnnotation.
	Name string
	// ID changes if a member is recreated.
	ID string
	// Answers reports whether the member answers requests.
	Answers bool
	// Votes reports whether the member answers, or did before it was silenced. A new machine that has not started is a
	// learner.
	Votes bool
	// Leader reports whether the member was the last one to become the leader.
	Leader bool
}

// Etcd returns the members in the member list of a workload cluster ("namespace/name"), by node. It sends no requests,
// so it may be called at any rate.
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
		// The server breaks ties in the same way, in favour of the first in the list.
		if t, err := time.Parse(time.RFC3339, pod.Annotations[cloudv1.EtcdLeaderFromAnnotationName]); err == nil && t.After(since) {
			leader, since = len(members), t
		}
		answers := c.mux.HasEtcdMember(cluster, pod.Name)
		node := strings.TrimPrefix(pod.Name, "etcd-")
		members = append(members, EtcdMember{
			Node: node, Name: cmp.Or(pod.Annotations[MemberNameAnnotation], node), ID: pod.Annotations[cloudv1.EtcdMemberIDAnnotationName],
			Answers: answers, Votes: answers || c.silenced(cluster, pod.Name),
		})
	}
	if leader >= 0 {
		members[leader].Leader = true
	}
	slices.SortFunc(members, func(a, b EtcdMember) int { return strings.Compare(a.Node, b.Node) })
	return members, nil
}

// Quorum reports whether a majority of the voting members answers.
func Quorum(members []EtcdMember) bool {
	voters, answering := 0, 0
	for _, m := range members {
		if m.Votes {
			voters++
		}
		if m.Answers {
			answering++
		}
	}
	return 2*answering > voters
}

// SilenceEtcd makes the etcd member on a node unreachable. It stays in the member list. The provider, which would
// restore it, cannot see it either, until WakeEtcd or until its machine is deleted.
func (c *Cloud) SilenceEtcd(cluster, node string) error {
	pod := "etcd-" + node
	c.hush(cluster, pod)
	if err := c.mux.DeleteEtcdMember(cluster, pod); err != nil {
		return fmt.Errorf("silencing the etcd member on %s of %s: %w", node, cluster, err)
	}
	return nil
}

// WakeEtcd reverts SilenceEtcd: the provider restores the member with its next reconcile.
func (c *Cloud) WakeEtcd(cluster, node string) { c.wake(cluster, "etcd-"+node) }

// SilenceAPIServer stops the API server on a node permanently. The cluster's API is served as long as another one runs.
func (c *Cloud) SilenceAPIServer(cluster, node string) error {
	pod := "kube-apiserver-" + node
	c.hush(cluster, pod)
	if err := c.mux.DeleteAPIServer(cluster, pod); err != nil {
		return fmt.Errorf("ending the API server on %s of %s: %w", node, cluster, err)
	}
	return nil
}

// Served reports whether the API of a workload cluster is served. It does not consider the quorum of etcd.
func (c *Cloud) Served(cluster string) bool {
	address, known := c.mux.ListListeners()[cluster]
	return known && !strings.HasSuffix(address, "(stopped)")
}

// KeepNodeDeleted keeps the provider from recreating a Node that was deleted, because a kubelet creates its Node only
// when it starts.
func (c *Cloud) KeepNodeDeleted(cluster, node string) { c.hush(cluster, node) }

func (c *Cloud) hush(cluster, pod string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent[cluster+" "+pod] = struct{}{}
}

func (c *Cloud) wake(cluster, pod string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.silent, cluster+" "+pod)
}

var errSilent = errors.New("the machine does not answer: one of its pods was silenced")

// hidden reports whether an object is invisible for an author: the provider does not see silenced pods.
func (c *Cloud) hidden(author, cluster string, object client.Object) bool {
	if _, pod := object.(*corev1.Pod); !pod || author == WorkloadAPI {
		return false
	}
	return c.silenced(cluster, object.GetName())
}

func (c *Cloud) silenced(cluster, pod string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, silent := c.silent[cluster+" "+pod]
	return silent
}
