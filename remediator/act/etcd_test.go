package act

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/remediator"
)

// fakeEtcd is an etcd client that records its calls and the time until their deadline.
type fakeEtcd struct {
	calls     []string
	remaining time.Duration
	moveErr   error // the error of MoveLeader
}

func (c *fakeEtcd) MoveLeader(_ context.Context, _ types.NamespacedName, _ []string, to string) error {
	c.calls = append(c.calls, "lead "+to)
	return c.moveErr
}

func (c *fakeEtcd) Defragment(ctx context.Context, _ types.NamespacedName, nodes []string, node string, _ int64) error {
	deadline, _ := ctx.Deadline()
	c.remaining = time.Until(deadline)
	c.calls = append(c.calls, "defragment "+node+" of "+nodes[0]+" "+nodes[1])
	return nil
}

func (c *fakeEtcd) Disarm(context.Context, types.NamespacedName, []string) error {
	c.calls = append(c.calls, "disarm")
	return nil
}

// TestDefragmentation checks that leadership is moved first, pauses are read again before the call, and the call has
// the timeout of the action.
func TestDefragmentation(t *testing.T) {
	const allowed = 4 * time.Minute
	of := remediator.Action{Type: remediator.Defragment, Machine: remediator.Subject{Name: "m1", UID: "u1"}, Value: "n1", Timeout: allowed}
	leads := of
	leads.NewLeader = "n2"
	for name, c := range map[string]struct {
		action remediator.Action
		paused bool
		stays  error
		want   []string
		err    bool
	}{
		"a follower":                 {action: of, want: []string{"defragment n1 of n1 n2"}},
		"the leader":                 {action: leads, want: []string{"lead n2", "defragment n1 of n1 n2"}},
		"a leader that cannot leave": {action: leads, stays: errors.New("no"), want: []string{"lead n2"}, err: true},
		"paused since":               {action: leads, paused: true, err: true},
		"an alarm":                   {action: remediator.Action{Type: remediator.Disarm}, want: []string{"disarm"}},
		"an alarm, paused since":     {action: remediator.Action{Type: remediator.Disarm}, paused: true, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(clusterv1.AddToScheme(scheme), controlplanev1.AddToScheme(scheme)); err != nil {
				t.Fatal(err)
			}
			meta := func(name string, uid types.UID) metav1.ObjectMeta {
				return metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: uid}
			}
			cluster := &clusterv1.Cluster{ObjectMeta: meta("prod", "c"), Spec: clusterv1.ClusterSpec{Paused: &c.paused}}
			etcd := &fakeEtcd{moveErr: c.stays}
			e := &Executor{Etcd: etcd, Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
				cluster, &controlplanev1.KubeadmControlPlane{ObjectMeta: meta("cp", "o")}, &clusterv1.Machine{ObjectMeta: meta("m1", "u1")},
			).Build()}
			f := &remediator.Facts{
				Owner:    remediator.OwnerFacts{Owner: remediator.Owner{Kind: string(remediator.ControlPlane), Namespace: "fleet", Name: "cp", UID: "o", Cluster: "prod"}},
				Machines: []remediator.Machine{{Name: "m1", UID: "u1", Node: "n1"}, {Name: "m2", UID: "u2", Node: "n2"}},
			}
			if err := e.Perform(t.Context(), f, c.action); (err != nil) != c.err {
				t.Error(err)
			}
			if !slices.Equal(etcd.calls, c.want) || etcd.remaining > allowed || slices.Contains(c.want, "defragment n1 of n1 n2") && etcd.remaining < allowed-time.Minute {
				t.Errorf("calls = %v, with %s until the deadline", etcd.calls, etcd.remaining)
			}
		})
	}
}
