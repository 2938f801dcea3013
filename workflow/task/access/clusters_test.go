package access

import (
	"context"
	"testing"

	"k8s.io/client-go/rest"

	"scute.dev/workflow/task"
)

// TestConnectIsBounded: asking a server for its kinds has no context that could end it.
func TestConnectIsBounded(t *testing.T) {
	cluster, err := connect(&rest.Config{Host: "https://127.0.0.1:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if cluster.Config.Timeout <= 0 {
		t.Error("a request may take for ever")
	}
}

// TestRunsOfANamespaceShareTheKinds: what kinds the own cluster has is kept once for a namespace, and for no other cluster.
func TestRunsOfANamespaceShareTheKinds(t *testing.T) {
	clusters := &Clusters{Own: func() (*rest.Config, error) { return &rest.Config{Host: "https://127.0.0.1:1"}, nil }}
	open := func(namespace, account string) *Cluster {
		t.Helper()
		cluster, err := clusters.Open(context.Background(), &task.Call{Namespace: namespace, ServiceAccount: account}, ClusterRef{})
		if err != nil {
			t.Fatal(err)
		}
		return cluster
	}
	one, two, other := open("a", "one"), open("a", "two"), open("b", "one")
	if one.Client.RESTMapper() != two.Client.RESTMapper() {
		t.Error("two runs of a namespace ask for the kinds each")
	}
	if one.Client.RESTMapper() == other.Client.RESTMapper() {
		t.Error("runs of two namespaces share the kinds")
	}
	if got := two.Config.Impersonate.UserName; got != "system:serviceaccount:a:two" {
		t.Errorf("the second run acts as %s", got)
	}
	for i := range 100 {
		open(string(rune('A'+i)), "one")
	}
	if n := clusters.kinds.Len(); n > cachedKinds {
		t.Errorf("the kinds of %d namespaces are kept", n)
	}
}
