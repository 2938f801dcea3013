package etcd

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/config/crd"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/kube/guard"
	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/act"
	"scute.dev/remediator/observe"
	"scute.dev/remediator/runner"
	"scute.dev/test/stack"
	"scute.dev/test/testbed"
)

// key is the name of the cluster in the management cluster.
var key = types.NamespacedName{Namespace: "fleet", Name: "prod"}

// plane is a control plane with real etcd. Its objects are in a management cluster without controllers.
type plane struct {
	*observe.Observer
	*members
	side  *testbed.Side
	facts remediator.Facts
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	p := &plane{members: start(t)}
	p.side = testbed.StartForTest(t, testbed.Options{Sides: []string{"one"}, Bare: true}).Side("one")
	ctx, c := t.Context(), p.side.Client()
	definitions, err := crd.Definitions(crd.Files)
	must(t, err)
	var served []client.Object
	for _, d := range definitions {
		served = append(served, d)
	}
	must(t, stack.Serve(ctx, c, served))
	must(t, c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}}))
	kubeconfig, err := p.side.Kubeconfig()
	must(t, err)
	for purpose, data := range map[secret.Purpose]map[string][]byte{
		secret.Kubeconfig: {secret.KubeconfigDataName: kubeconfig},
		secret.EtcdCA:     {secret.TLSCrtDataName: p.caPEM(), secret.TLSKeyDataName: p.caKeyPEM()},
	} {
		must(t, c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: secret.Name(key.Name, purpose)}, Data: data}))
	}
	p.objects(ctx)
	local, err := guard.New(append([]string{"127.0.0.1"}, p.addresses...))
	must(t, err)
	p.Observer, err = observe.New(ctx, p.side.Config(), local, nil)
	must(t, err)
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.Cache().Start(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if !p.Cache().WaitForCacheSync(ctx) {
		t.Fatal("the cache did not fill")
	}
	return p
}

// objects creates the objects of the control plane. According to the facts, all its machines are healthy.
func (p *plane) objects(ctx context.Context) {
	p.t.Helper()
	c := p.side.Client()
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: key.Name, clusterv1.MachineControlPlaneLabel: ""}}
	}
	infra := clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "DevMachineTemplate", Name: "none"}
	cluster := &clusterv1.Cluster{ObjectMeta: meta(key.Name)}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubeadmControlPlane", Name: key.Name}
	owner := &controlplanev1.KubeadmControlPlane{ObjectMeta: meta(key.Name)}
	owner.Spec.Version, owner.Spec.MachineTemplate.Spec.InfrastructureRef = "v1.36.0", infra
	for _, o := range []client.Object{cluster, owner} {
		must(p.t, c.Create(ctx, o))
	}
	p.facts = remediator.Facts{
		Owner: remediator.OwnerFacts{
			Owner: remediator.Owner{Kind: string(remediator.ControlPlane), Namespace: key.Namespace, Name: key.Name, UID: owner.UID, Cluster: key.Name},
			Found: true, Replicas: 3, Observed: true, MaxSurge: 1,
		},
		Cluster: remediator.ClusterFacts{Found: true},
		Policy: remediator.Policy{
			Name: "repair", Attempts: 3, Survey: time.Minute,
			Defragmentation: remediator.Defragmentation{Enabled: true, FreePercent: 45, MinSize: 1 << 20, Pause: 10 * time.Minute, Deadline: 5 * time.Minute, Disarm: true},
		},
	}
	for i, name := range p.names {
		m := &clusterv1.Machine{ObjectMeta: meta(name)}
		m.Spec.ClusterName, m.Spec.InfrastructureRef = key.Name, infra
		m.Spec.InfrastructureRef.Kind = "DevMachine"
		data := "none"
		m.Spec.Bootstrap.DataSecretName = &data
		must(p.t, c.Create(ctx, m))
		m.Status.NodeRef.Name = name
		m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: p.addresses[i]}}
		must(p.t, c.Status().Update(ctx, m))
		conditions := make(map[string]remediator.Condition)
		for _, condition := range []string{
			clusterv1.MachineNodeReadyCondition, "APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy", "EtcdMemberHealthy",
		} {
			conditions[condition] = remediator.Condition{Status: object.True}
		}
		p.facts.Machines = append(p.facts.Machines, remediator.Machine{Name: name, UID: m.UID, Created: m.CreationTimestamp.Time, Node: name, Conditions: conditions})
	}
}

// Observe returns facts according to which everything is healthy. The real Observer examines etcd.
func (p *plane) Observe(context.Context, remediator.Owner, remediator.CreatedObjects) (*remediator.Facts, error) {
	f := p.facts
	f.Machines = slices.Clone(f.Machines)
	return &f, nil
}

// fill writes until the database is full, and then deletes what it wrote. The size of the files does not change.
func (p *plane) fill(ctx context.Context) {
	p.t.Helper()
	const ticks = 2000
	for i := range ticks {
		_, err := p.kv(0).Put(ctx, &etcd.PutRequest{Key: fmt.Appendf(nil, "tick-%04d", i)})
		must(p.t, err)
	}
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		_, err = p.kv(0).Put(ctx, &etcd.PutRequest{Key: fmt.Appendf(nil, "fill-%d", i), Value: bytes.Repeat([]byte("x"), 1<<18)})
	}
	if err == nil || !strings.Contains(err.Error(), "database space exceeded") {
		p.t.Fatalf("the database is not full: %v", err)
	}
	remove := func(ctx context.Context, from, to string) error {
		deleted, err := p.kv(0).DeleteRange(ctx, &etcd.DeleteRangeRequest{Key: []byte(from), RangeEnd: []byte(to)})
		if err == nil {
			_, err = p.kv(0).Compact(ctx, &etcd.CompactionRequest{Revision: deleted.Header.Revision, Physical: true})
		}
		return err
	}
	must(p.t, remove(ctx, "fill-", "fill."))
	tick := 0
	for i := range p.names { // each member compacts independently, and frees the space only after further transactions
		eventually(p.t, "free space of "+p.names[i], func(ctx context.Context) error {
			tick++
			if err := remove(ctx, fmt.Sprintf("tick-%04d", tick-1), fmt.Sprintf("tick-%04d", tick)); err != nil {
				return err
			}
			s, err := p.maintenance(i).Status(ctx, &etcd.StatusRequest{})
			if err == nil && s.DbSizeInUse*2 > s.DbSize {
				err = fmt.Errorf("%d of %d bytes are in use", s.DbSizeInUse, s.DbSize)
			}
			return err
		})
	}
}

// TestDefragmentation checks a real etcd of three members whose databases are full. The members are defragmented one
// after the other, the leader last and after it has moved the leadership. Then the alarm is disarmed, and etcd accepts
// writes again. The test uses the real Observer, Executor and log.
func TestDefragmentation(t *testing.T) {
	p := newPlane(t)
	ctx := t.Context()
	p.fill(ctx)
	before, led := p.sizes(ctx), p.names[p.leader(ctx)]
	l, now := logtest.Open(t), time.Now()
	r := &runner.Runner{
		Log: l, Incarnation: "one", Observer: p, View: runner.NewRemediations(), Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
		MoveOf:   func(context.Context, uint64, string, string) (string, error) { return "", nil },
		Executor: &act.Executor{Client: p.side.Client(), Etcd: p.Observer},
	}
	owner := p.facts.Owner.Owner
	for range 200 {
		again, err := r.Reconcile(ctx, owner)
		must(t, err)
		if _, err := p.kv(0).Put(ctx, &etcd.PutRequest{Key: []byte("after"), Value: []byte("it")}); err == nil {
			break
		}
		now = now.Add(again)
	}
	var done []string
	disarmed := false
	for _, e := range events(t, l, owner) {
		switch e := e.(type) {
		case remediator.DefragmentationStarted:
			t.Logf("%T %+v", e, e)
			if e.Leader != (e.Node == led) || e.Leader && len(done) != 2 {
				t.Errorf("%s is the leader; %s was defragmented after %v", led, e.Node, done)
			}
		case remediator.DefragmentationEnded:
			t.Logf("%T %+v", e, e)
			if e.Outcome != remediator.DefragmentationDone || e.After.Size >= e.Before.Size {
				t.Errorf("defragmentation ended with %+v, want it done with a smaller database", e)
			}
			done = append(done, e.Node)
		case remediator.NoSpaceDisarmed:
			t.Logf("%T %+v", e, e)
			disarmed = len(done) == 3
		}
	}
	if len(done) != 3 || !disarmed {
		t.Errorf("defragmented %v, disarmed %t; want all members, and true", done, disarmed)
	}
	after := p.sizes(ctx)
	t.Logf("sizes before %v, after %v", before, after)
	for i := range after {
		if after[i]*2 > before[i] {
			t.Errorf("the database of %s had %d bytes, and still has %d", p.names[i], before[i], after[i])
		}
	}
	if _, err := p.kv(0).Put(ctx, &etcd.PutRequest{Key: []byte("after"), Value: []byte("it")}); err != nil {
		t.Errorf("Put after the defragmentation = %v, want nil", err)
	}
}

// TestSilentMember checks that no member is defragmented while one is down, even if it is requested.
func TestSilentMember(t *testing.T) {
	p := newPlane(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	must(t, p.Defragment(ctx, key, p.names, p.names[0], 1))
	if err := p.Defragment(ctx, key, p.names, p.names[0], 1<<40); err != nil {
		t.Errorf("Defragment of a database below the threshold = %v, want nil", err)
	}
	must(t, p.processes[2].Kill(ctx))
	if err := p.Defragment(ctx, key, p.names, p.names[0], 1); err == nil || !strings.Contains(err.Error(), p.names[2]) {
		t.Errorf("Defragment with a silent member = %v, want an error with its name", err)
	}
}

func events(t *testing.T, l *eventlog.Log, owner remediator.Owner) []remediator.Event {
	t.Helper()
	records, err := l.Read(t.Context(), eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: owner.ID()}, 0)
	must(t, err)
	var all []remediator.Event
	for _, record := range records {
		must(t, remediator.NewCatalog().Fold(record, func(e remediator.Event, _ time.Time) { all = append(all, e) }))
	}
	return all
}
