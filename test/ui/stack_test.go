package ui

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// scene is two management clusters and a daemon, with a run in progress, a move that waits and a machine that is held.
type scene struct {
	t       *testing.T
	blue    *scuted.Installation
	client  client.Client
	nats    string
	program string
	machine string
}

const sceneNamespace = "fleet"

func newScene(ctx context.Context, t *testing.T) *scene {
	t.Helper()
	programs, err := scuted.Build(ctx, os.Stderr)
	must(t, err)
	bed := testbed.StartForTest(t, testbed.Options{})
	blue, err := scuted.Install(ctx, bed.Side("blue"), programs)
	must(t, err)
	green, err := scuted.Install(ctx, bed.Side("green"), programs)
	must(t, err)
	s := &scene{t: t, blue: blue, program: programs.Ctl}
	s.client, err = blue.Client()
	must(t, err)
	s.daemon(ctx)
	for _, c := range []testbed.Cluster{testbed.Tiny(sceneNamespace, "stays"), testbed.Tiny(sceneNamespace, "moves")} {
		_, err = blue.Side.CreateCluster(ctx, c)
		must(t, err)
	}
	must(t, blue.PutTarget(ctx, sceneNamespace, green))
	for _, name := range []string{"stays", "moves"} {
		must(t, blue.Side.WaitAvailable(ctx, sceneNamespace, name))
	}
	s.hold(ctx, bed)
	s.move(ctx)
	s.run(ctx)
	return s
}

// daemon starts the daemon and makes its log reachable.
func (s *scene) daemon(ctx context.Context) {
	s.t.Helper()
	dir, err := s.blue.NewLogDir()
	must(s.t, err)
	listen := ports.AddressForTest(s.t)
	s.nats = "nats://" + listen
	d, err := s.blue.Start(scuted.DaemonOptions{LogDir: dir, Listen: listen, Health: ports.AddressForTest(s.t)})
	must(s.t, err)
	s.t.Cleanup(func() {
		stopping, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := d.Stop(stopping); err != nil {
			s.t.Error(err)
		}
	})
	must(s.t, d.WaitReady(ctx))
}

// hold breaks a node of a cluster whose policy holds unhealthy machines for an hour.
func (s *scene) hold(ctx context.Context, bed *testbed.Bed) {
	s.t.Helper()
	p := &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: sceneNamespace, Name: "careful"}}
	p.Spec.Hold = &v1alpha1.Duration{Duration: time.Hour}
	p.Spec.Checks.UnhealthyNodeConditions = []v1alpha1.UnhealthyCondition{{Type: "Ready", Status: "False", Timeout: v1alpha1.Duration{Duration: time.Second}}}
	must(s.t, s.client.Create(ctx, p))
	machines := &clusterv1.MachineList{}
	must(s.t, s.blue.Side.Client().List(ctx, machines, client.InNamespace(sceneNamespace), client.MatchingLabels{clusterv1.ClusterNameLabel: "stays"},
		client.HasLabels{clusterv1.MachineControlPlaneLabel}))
	if len(machines.Items) != 1 {
		s.t.Fatalf("%d control plane machines", len(machines.Items))
	}
	s.machine = machines.Items[0].Name
	must(s.t, bed.Workload(sceneNamespace, "stays").BreakNode(ctx, machines.Items[0].Status.NodeRef.Name, corev1.ConditionFalse))
	s.remediation(ctx, "is held", func(r *v1alpha1.SurgeRemediation) bool { return r.Status.Phase == v1alpha1.RemediationHeld })
}

// move starts a move that waits for a controller that never acknowledges the pause.
func (s *scene) move(ctx context.Context) {
	s.t.Helper()
	clusters := &infrav1.DevClusterList{}
	must(s.t, s.blue.Side.Client().List(ctx, clusters, client.InNamespace(sceneNamespace), client.MatchingLabels{clusterv1.ClusterNameLabel: "moves"}))
	if len(clusters.Items) != 1 {
		s.t.Fatalf("%d DevClusters", len(clusters.Items))
	}
	block := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"clusterctl.cluster.x-k8s.io/block-move":"yes"}}}`))
	must(s.t, s.blue.Side.Client().Patch(ctx, &clusters.Items[0], block))
	m := &v1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: sceneNamespace, Name: "away"}}
	m.Spec.Target.KubeconfigSecretRef.Name, m.Spec.Selection.Clusters = "green", []string{"moves"}
	must(s.t, s.blue.Create(ctx, m))
	_, err := s.blue.Wait(ctx, sceneNamespace, "away", func(m *v1alpha1.Move) bool { return len(m.Status.WaitingFor) == 1 })
	must(s.t, err)
}

// run starts a run that waits for an approval.
func (s *scene) run(ctx context.Context) {
	s.t.Helper()
	w, err := scuted.NewWorkflowRun(sceneNamespace, "nightly", "default", `
tasks:
- {name: approve, kind: Approve, with: {message: "is it night?"}}
- {name: after, kind: Approve, needs: [approve], with: {message: "is it day?"}}
`)
	must(s.t, err)
	must(s.t, s.client.Create(ctx, w))
	s.phase(ctx, v1alpha1.RunPaused)
}

func (s *scene) phase(ctx context.Context, want v1alpha1.RunPhase) *v1alpha1.WorkflowRun {
	s.t.Helper()
	w, err := s.blue.WaitWorkflowRun(ctx, sceneNamespace, "nightly", func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == want })
	must(s.t, err)
	return w
}

func (s *scene) remediation(ctx context.Context, what string, is func(*v1alpha1.SurgeRemediation) bool) *v1alpha1.SurgeRemediation {
	s.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	r := &v1alpha1.SurgeRemediation{}
	for {
		err := s.client.Get(ctx, client.ObjectKey{Namespace: sceneNamespace, Name: s.machine}, r)
		if err == nil && is(r) {
			return r
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("waiting until the machine %s: %v %v: %+v", what, ctx.Err(), err, r.Status)
		case <-tick.C:
		}
	}
}

// serve starts scutectl ui with a kubeconfig.
func (s *scene) serve(kubeconfig string, args ...string) string {
	s.t.Helper()
	return serve(s.t, exec.CommandContext(s.t.Context(), s.program, append([]string{"ui", "--nats", s.nats, "--kubeconfig", kubeconfig}, args...)...))
}

// viewer returns a kubeconfig of a user who may only read.
func (s *scene) viewer(ctx context.Context) string {
	s.t.Helper()
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: sceneNamespace, Name: "looks"}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "looks"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "scute-viewer"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: sceneNamespace, Name: "looks"}},
		},
	} {
		must(s.t, s.blue.Side.Client().Create(ctx, o))
	}
	harness.Allowed(ctx, s.t, s.blue.Side.Client(), "system:serviceaccount:"+sceneNamespace+":looks",
		authorizationv1.ResourceAttributes{Namespace: sceneNamespace, Verb: "get", Group: "scute.dev", Resource: "moves"})
	_, kubeconfig, err := s.blue.Side.ServiceAccountConfig(ctx, sceneNamespace, "looks")
	must(s.t, err)
	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	must(s.t, os.WriteFile(file, kubeconfig, 0o600))
	return file
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
