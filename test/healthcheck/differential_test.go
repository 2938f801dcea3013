// Package healthcheck compares scute with Cluster API: which machines it finds unhealthy with those of a
// MachineHealthCheck, and its decisions about them with those of the machine's owner.
package healthcheck

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"pgregory.net/rapid"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinehealthcheck"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/observe"
)

// TestAsMachineHealthCheck checks that Cluster API's own MachineHealthCheck reconciler and Judge find the same machines
// of random clusters unhealthy, with the same checks.
func TestAsMachineHealthCheck(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{ // never started
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &machinehealthcheck.Reconciler{Client: mgr.GetClient(), ClusterCache: clustercache.NewFakeClusterCache(mgr.GetClient(), client.ObjectKey{})}
	if err := r.SetupWithManager(t.Context(), silent{mgr}, controller.Options{}); err != nil { // once: each case sets another client
		t.Fatal(err)
	}
	unhealthy, all := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		w := &checkedWorld{t: rt, now: time.Now().Truncate(time.Second), key: client.ObjectKey{Namespace: "fleet", Name: "c"}}
		w.fill()
		have := fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.objects...).WithStatusSubresource(w.objects...).Build()
		nodes := fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.nodes...).Build()
		r.Client, r.ClusterCache = have, clustercache.NewFakeClusterCache(nodes, w.key, "machinehealthcheck-watchClusterNodes")
		for range 2 { // the first only sets the condition Paused
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: w.key}); err != nil {
				rt.Fatal(err)
			}
		}
		for _, m := range w.machines {
			after := &clusterv1.Machine{}
			if err := have.Get(t.Context(), client.ObjectKeyFromObject(m), after); err != nil {
				rt.Fatal(err)
			}
			said := meta.FindStatusCondition(after.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
			theirs := said != nil && said.Status == metav1.ConditionFalse
			facts := observe.Facts(m, w.cluster, metav1.HasLabel(m.ObjectMeta, clusterv1.MachineControlPlaneLabel))
			ours := remediator.Judge(&facts, remediator.MachineMarked{}, w.checks, time.Now())
			all++
			if theirs {
				unhealthy++
			}
			if (ours.State == remediator.Unhealthy) != theirs {
				rt.Fatalf("health check %+v, scute %+v\nmachine %+v\nconditions %+v\nat %s", said, ours, m, w.cluster.Status.Conditions, w.now)
			}
		}
	})
	t.Logf("%d of %d machines are unhealthy", unhealthy, all)
	if unhealthy < all/10 || unhealthy > all*9/10 {
		t.Error("too few or too many machines are unhealthy")
	}
}

// silent is a manager that drops Events.
type silent struct{ manager.Manager }

func (silent) GetEventRecorderFor(string) record.EventRecorder { return &record.FakeRecorder{} }

// checkedWorld is a cluster with a MachineHealthCheck.
type checkedWorld struct {
	t        *rapid.T
	now      time.Time
	key      client.ObjectKey
	cluster  *clusterv1.Cluster
	machines []*clusterv1.Machine
	objects  []client.Object // of the management cluster
	nodes    []client.Object // of the workload cluster
	checks   remediator.Checks
}

// ago draws a time that is half a minute away from every timeout, because time passes during the test.
func (w *checkedWorld) ago(what string) metav1.Time {
	minutes := rapid.IntRange(0, 30).Draw(w.t, what)
	return metav1.NewTime(w.now.Add(-time.Duration(minutes)*time.Minute - 30*time.Second))
}

func (w *checkedWorld) one(what string, of ...string) string {
	return rapid.SampledFrom(of).Draw(w.t, what)
}

// condition draws a condition, or none.
func (w *checkedWorld) condition(conditions []metav1.Condition, kind string, reasons ...string) []metav1.Condition {
	status := w.one(kind, "", "True", "True", "False", "Unknown")
	if status == "" {
		return conditions
	}
	return append(conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: w.one("reason", append(reasons, "Reason")...), LastTransitionTime: w.ago(kind)})
}

func (w *checkedWorld) fill() {
	meta := metav1.ObjectMeta{Namespace: w.key.Namespace, Name: w.key.Name, Labels: map[string]string{clusterv1.ClusterNameLabel: w.key.Name}}
	w.cluster = &clusterv1.Cluster{ObjectMeta: meta}
	w.cluster.UID = "c"
	for _, kind := range []string{clusterv1.ClusterControlPlaneInitializedCondition, clusterv1.ClusterInfrastructureReadyCondition} {
		w.cluster.Status.Conditions = w.condition(w.cluster.Status.Conditions, kind)
	}
	check := &clusterv1.MachineHealthCheck{ObjectMeta: meta, Spec: clusterv1.MachineHealthCheckSpec{ClusterName: w.key.Name}}
	check.Spec.Selector.MatchLabels = meta.Labels
	minutes := func(what string) int32 { return int32(rapid.IntRange(0, 20).Draw(w.t, what)) }
	startup := 60 * minutes("startup")
	check.Spec.Checks.NodeStartupTimeoutSeconds = &startup
	w.checks = remediator.Checks{NodeStartup: time.Duration(startup) * time.Second}
	for _, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
		if after := 60 * minutes("Ready "+string(status)); rapid.Bool().Draw(w.t, "is checked") {
			check.Spec.Checks.UnhealthyNodeConditions = append(check.Spec.Checks.UnhealthyNodeConditions,
				clusterv1.UnhealthyNodeCondition{Type: corev1.NodeReady, Status: status, TimeoutSeconds: &after})
			w.checks.Node = append(w.checks.Node, remediator.Check{Type: "Ready", Status: object.ConditionStatus(status), Timeout: time.Duration(after) * time.Second})
		}
	}
	if after := 60 * minutes("of machines"); rapid.Bool().Draw(w.t, "is checked") {
		check.Spec.Checks.UnhealthyMachineConditions = []clusterv1.UnhealthyMachineCondition{{Type: "Broken", Status: metav1.ConditionTrue, TimeoutSeconds: &after}}
		w.checks.Machine = []remediator.Check{{Type: "Broken", Status: object.True, Timeout: time.Duration(after) * time.Second}}
	}
	if startup == 0 && len(w.checks.Node)+len(w.checks.Machine) == 0 { // scute finds nothing unhealthy without a check
		startup, w.checks.NodeStartup = 600, 10*time.Minute
	}
	w.objects = append(w.objects, w.cluster, check)
	for i := range 20 {
		w.machine(fmt.Sprintf("m%d", i))
	}
}

func (w *checkedWorld) machine(name string) {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: name, UID: types.UID(name), CreationTimestamp: w.ago("created"), Labels: map[string]string{clusterv1.ClusterNameLabel: w.key.Name}},
		Spec:       clusterv1.MachineSpec{ClusterName: w.key.Name},
	}
	if rapid.Bool().Draw(w.t, "control plane") {
		m.Labels[clusterv1.MachineControlPlaneLabel] = ""
	}
	if rapid.IntRange(0, 15).Draw(w.t, "by hand") == 0 {
		m.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
	}
	m.Status.Conditions = w.condition(m.Status.Conditions, clusterv1.MachineInfrastructureReadyCondition)
	m.Status.Conditions = w.condition(m.Status.Conditions, "Broken")
	// What the controller of Machines writes about a Node (setNodeHealthyAndReadyConditions in its reconciler). It
	// examines no Node before the control plane is initialized.
	initialized := meta.IsStatusConditionTrue(w.cluster.Status.Conditions, clusterv1.ClusterControlPlaneInitializedCondition)
	switch node := w.one("node", "", "", "there", "there", "there", "gone"); {
	case node == "" || !initialized:
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionUnknown, Reason: clusterv1.MachineNodeInspectionFailedReason, LastTransitionTime: w.ago("no node")})
	case node == "gone":
		m.Status.NodeRef.Name = name
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionFalse, Reason: clusterv1.MachineNodeDeletedReason, LastTransitionTime: w.ago("gone")})
	default:
		m.Status.NodeRef.Name = name
		ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionStatus(w.one("ready", "True", "False", "Unknown")), LastTransitionTime: w.ago("ready")}
		w.nodes = append(w.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{ready}}})
		reason := map[corev1.ConditionStatus]string{
			corev1.ConditionTrue: clusterv1.MachineNodeReadyReason, corev1.ConditionFalse: clusterv1.MachineNodeNotReadyReason, corev1.ConditionUnknown: clusterv1.MachineNodeReadyUnknownReason,
		}[ready.Status]
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionStatus(ready.Status), Reason: reason, LastTransitionTime: ready.LastTransitionTime})
	}
	w.machines = append(w.machines, m)
	w.objects = append(w.objects, m)
}
