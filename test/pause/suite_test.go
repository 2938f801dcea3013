package pause

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/test/provider"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// suite is what all tests share: starting a management cluster is what costs.
type suite struct {
	bed      *testbed.Bed
	programs scuted.Programs
	// green is where moves go. No daemon of scute runs there.
	blue, green *scuted.Installation
	scute       client.Client
}

// shared is set once by TestMain.
var shared *suite //nolint:gochecknoglobals // a test main has no other way to hand on what it made

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), testbed.StartTimeout)
	defer cancel()
	s, err := start(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pause:", err)
		return 1
	}
	shared = s
	defer func() {
		if code != 0 {
			s.bed.Keep()
		}
		if err := s.bed.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "pause: stopping the test bed:", err)
			code = 1
		}
	}()
	return m.Run()
}

func start(ctx context.Context) (*suite, error) {
	programs, err := scuted.Build(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	bed, err := testbed.Start(ctx, testbed.Options{Sides: []string{"blue", "green"}})
	if err != nil {
		return nil, err
	}
	s := &suite{bed: bed, programs: programs}
	for _, side := range []string{"blue", "green"} {
		err = errors.Join(err, provider.Install(ctx, bed.Side(side).Client()))
	}
	if err == nil {
		s.blue, err = scuted.Install(ctx, bed.Side("blue"), programs, provider.Values()...)
	}
	if err == nil {
		s.green, err = scuted.Install(ctx, bed.Side("green"), programs, provider.Values()...)
	}
	if err == nil {
		s.scute, err = s.blue.Client()
	}
	if err != nil {
		bed.Keep()
		return nil, errors.Join(err, bed.Stop())
	}
	return s, nil
}

func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cluster makes a workload cluster and waits until it runs.
func cluster(ctx context.Context, t *testing.T, namespace, name string) {
	t.Helper()
	_, err := shared.blue.Side.CreateCluster(ctx, testbed.Tiny(namespace, name))
	must(t, err)
	must(t, shared.blue.Side.WaitAvailable(ctx, namespace, name))
}

// folder is that of a new log.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := shared.blue.NewLogDir()
	must(t, err)
	return dir
}

// daemon starts one that is stopped at the end of the test, if it still runs.
func daemon(t *testing.T, o scuted.DaemonOptions) *scuted.Daemon {
	t.Helper()
	d, err := shared.blue.Start(o)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := d.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return d
}

// create makes a Pause of clusters.
func create(ctx context.Context, t *testing.T, namespace, name string, clusters ...string) *v1alpha1.Pause {
	t.Helper()
	p := &v1alpha1.Pause{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.PauseSpec{Clusters: clusters, Reason: "a test"}}
	must(t, shared.scute.Create(ctx, p))
	return p
}

// until follows a Pause until it is as asked. It says where the Pause stood.
func until(ctx context.Context, t *testing.T, namespace, name string, is func(*v1alpha1.Pause) bool) *v1alpha1.Pause {
	t.Helper()
	p := &v1alpha1.Pause{}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := shared.scute.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, p)
		if err == nil && is(p) {
			return p
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("Pause %s/%s: %v: %+v", namespace, name, err, p.Status)
		}
	}
}

func acknowledged(p *v1alpha1.Pause) bool { return p.Status.Phase == v1alpha1.PauseAcknowledged }

// remove deletes a Pause, and waits until it is gone.
func remove(ctx context.Context, t *testing.T, p *v1alpha1.Pause) {
	t.Helper()
	must(t, shared.scute.Delete(ctx, p))
	gone(ctx, t, p)
}

func gone(ctx context.Context, t *testing.T, p *v1alpha1.Pause) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	now := &v1alpha1.Pause{}
	for client.IgnoreNotFound(shared.scute.Get(ctx, client.ObjectKeyFromObject(p), now)) == nil {
		if now.UID != p.UID {
			return
		}
		now.UID = ""
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("Pause %s is not gone: %+v", p.Name, now.Status)
		}
	}
}

// stands is whether a Cluster is paused, and the annotations of scute on it.
func stands(ctx context.Context, t *testing.T, namespace, name string) (paused bool, marks []string) {
	t.Helper()
	c := &clusterv1.Cluster{}
	must(t, shared.blue.Side.Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, c))
	for key, value := range c.Annotations {
		if strings.HasPrefix(key, object.OwnPrefix) {
			marks = append(marks, key+"="+value)
		}
	}
	return ptr.Deref(c.Spec.Paused, false), marks
}

// want holds a Cluster against what it must be.
func want(ctx context.Context, t *testing.T, namespace, name string, paused bool, marks int) {
	t.Helper()
	if got, have := stands(ctx, t, namespace, name); got != paused || len(have) != marks {
		t.Errorf("Cluster %s: paused %t with %q, want %t with %d annotations", name, got, have, paused, marks)
	}
}

// userPauses has a user pause a Cluster.
func userPauses(ctx context.Context, t *testing.T, namespace, name string) {
	t.Helper()
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	must(t, shared.blue.Side.Client().Patch(ctx, c, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":true}}`)), client.FieldOwner("a-user")))
}

// pausedMachines counts the Machines of a Cluster whose condition Paused is True.
func pausedMachines(ctx context.Context, t *testing.T, namespace, name string) (paused, all int) {
	t.Helper()
	list := &clusterv1.MachineList{}
	must(t, shared.blue.Side.Client().List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}))
	for _, m := range list.Items {
		for _, c := range m.Status.Conditions {
			if c.Type == clusterv1.PausedCondition && c.Status == metav1.ConditionTrue {
				paused++
			}
		}
	}
	return paused, len(list.Items)
}
