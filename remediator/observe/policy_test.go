package observe

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
)

// TestMachinesWithoutNodes checks that machines that run etcd without a kubelet, which never get a Node, have no
// startup timeout.
func TestMachinesWithoutNodes(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	policy := &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "p"}}
	policy.Spec.Workers, policy.Spec.Checks.NodeStartup = true, &v1alpha1.Duration{Duration: time.Minute}
	o := &Observer{cache: listing{from: fake.NewClientBuilder().WithScheme(scheme).WithObjects(policy).Build()}}
	for kind, want := range map[string]time.Duration{"EtcdadmCluster": 0, "MachineDeployment": time.Minute} {
		l := &observation{observer: o, facts: &remediator.Facts{Owner: remediator.OwnerFacts{Owner: remediator.Owner{Kind: kind, Namespace: "fleet"}}}, clusterObject: &clusterv1.Cluster{}}
		if err := l.policy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l.facts.Policy.Name != "p" || l.facts.Policy.Checks.NodeStartup != want {
			t.Errorf("%s: policy = %+v", kind, l.facts.Policy)
		}
	}
}

// listing is a cache that lists through a client.
type listing struct {
	cache.Cache
	from client.Client
}

func (l listing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return l.from.List(ctx, list, options...)
}
