package machine

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/term"
	"scute.dev/internal/pinned"
	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

func now() time.Time { return time.Date(2026, 7, 30, 12, 5, 0, 0, time.UTC) }

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now().Add(-d)) }

func number(n int32) *int32 { return &n }

func clusterOf(name string) clusterv1.Cluster {
	c := clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, Labels: map[string]string{"tier": name}}}
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{Kind: "KubeadmControlPlane", Name: name + "-control-plane"}
	return c
}

func asOwner(o client.Object) ownerkind.Owner {
	owner, _ := ownerkind.As(o)
	return owner
}

func planeOf(name string, replicas int32) *controlplanev1.KubeadmControlPlane {
	return &controlplanev1.KubeadmControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name + "-control-plane"},
		Spec:       controlplanev1.KubeadmControlPlaneSpec{Replicas: number(replicas), Version: "v1.36.3"},
	}
}

// machineOf returns a control plane machine. conditions has one letter (T, F or U) for each of Node, etcd member, and
// the four pods.
func machineOf(cluster, name, conditions string) clusterv1.Machine {
	yes := true
	m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: name, UID: types.UID(name), CreationTimestamp: ago(72 * time.Hour),
		Labels:          map[string]string{clusterv1.MachineControlPlaneLabel: ""},
		OwnerReferences: []metav1.OwnerReference{{Kind: "KubeadmControlPlane", Name: cluster + "-control-plane", Controller: &yes}},
	}}
	m.Spec.ClusterName = cluster
	m.Status.Phase, m.Status.NodeRef.Name, m.Status.FailureDomain = "Running", name, "zone-a"
	names := append([]string{clusterv1.MachineNodeReadyCondition, controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition}, components()...)
	for i, letter := range conditions {
		status := map[rune]metav1.ConditionStatus{'T': metav1.ConditionTrue, 'F': metav1.ConditionFalse, 'U': metav1.ConditionUnknown}[letter]
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: names[i], Status: status})
	}
	return m
}

func workerOf(cluster, name string) clusterv1.Machine {
	m := machineOf(cluster, name, "T")
	yes := true
	m.Labels = map[string]string{clusterv1.MachineDeploymentNameLabel: cluster + "-md-0"}
	m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: cluster + "-md-0-abc", Controller: &yes}}
	m.Status.NodeRef.Name = "ip-10-0-7-12.internal"
	return m
}

func withMark(m clusterv1.Machine, mark v1alpha1.UnhealthyMark) clusterv1.Machine {
	value, err := json.Marshal(mark)
	if err != nil {
		panic(err)
	}
	m.Annotations = map[string]string{v1alpha1.UnhealthyAnnotation: string(value), clusterv1.DeleteMachineAnnotation: "scute.dev"}
	return m
}

// unhealthyFleet returns a fleet with a surge in progress, a cluster without a policy, and one with external etcd.
func unhealthyFleet() *Objects {
	victim := withMark(machineOf("prod", "prod-control-plane-h2ttv", "UTUUUU"), v1alpha1.UnhealthyMark{
		State: "Scheduled", Since: ago(6 * time.Minute), Reason: "NodeReady is Unknown: Node condition Ready is Unknown", Source: "MachineHealthCheck",
	})
	replacement := machineOf("prod", "prod-control-plane-p4x9d", "")
	replacement.Status.NodeRef.Name, replacement.Status.Phase, replacement.CreationTimestamp = "", "Provisioning", ago(12*time.Second)
	leaving := machineOf("bare", "bare-control-plane-zzzzz", "TTTTTT")
	gone := ago(time.Second)
	leaving.DeletionTimestamp, leaving.Spec.Version = &gone, "v1.35.7"
	broken := workerOf("prod", "prod-md-0-abc-xk2lp")
	broken.Status.Conditions = append(broken.Status.Conditions, metav1.Condition{
		Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse, Message: "Health check failed: Node condition MemoryPressure is True",
	})
	external := planeOf("ext", 3)
	external.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints = []string{"https://etcd:2379"}
	paused := clusterOf("ext")
	paused.Spec.Paused = new(bool)
	*paused.Spec.Paused = true
	workers := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-md-0"}, Spec: clusterv1.MachineDeploymentSpec{Replicas: number(2)},
	}
	return &Objects{
		Now:      now(),
		Served:   true,
		Clusters: []clusterv1.Cluster{clusterOf("prod"), clusterOf("bare"), paused},
		Owners:   []ownerkind.Owner{asOwner(planeOf("prod", 3)), asOwner(planeOf("bare", 1)), asOwner(external), asOwner(workers)},
		Machines: []clusterv1.Machine{
			machineOf("prod", "prod-control-plane-9qwlm", "TTTTTT"), victim, replacement, machineOf("prod", "prod-control-plane-4x7zk", "TTTFTT"),
			leaving, broken, workerOf("prod", "prod-md-0-abc-aaaaa"),
		},
		Policies: []v1alpha1.RepairPolicy{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "careful"},
			Spec: v1alpha1.RepairPolicySpec{
				Selector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}, DryRun: true, PauseRequests: []string{"change freeze"},
			},
		}},
		Remediations: []v1alpha1.SurgeRemediation{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-control-plane-h2ttv"},
			Status: v1alpha1.SurgeRemediationStatus{
				Phase: v1alpha1.RemediationReplacing, Decision: "RolloutSurge (relaxed)", Replacement: "prod-control-plane-p4x9d", Attempts: 2,
				Message: "replacement prod-control-plane-p4x9d exists, and is not ready; retrying after: the API server is gone\x1b[2J",
				Next:    "if the error lasts, fix its cause; scute continues by itself",
				Quorum:  &v1alpha1.QuorumStatus{Voters: 3, Answering: 2, Tolerates: 0},
			},
		}},
	}
}

// withLog adds a log to the unhealthy fleet: a surge that waits for its new machine, and whose policy allows no other
// step now.
func withLog(o *Objects) *Objects {
	victim := remediator.Subject{Name: "prod-control-plane-h2ttv", UID: "prod-control-plane-h2ttv"}
	s := &remediator.State{}
	for _, e := range []remediator.Event{
		remediator.Registered{Owner: remediator.Owner{Kind: "KubeadmControlPlane", Namespace: "fleet", Name: "prod-control-plane", UID: "k", Cluster: "prod"}},
		remediator.MachineMarked{Machine: victim, State: remediator.Unhealthy, Reason: "NodeReady is Unknown", Source: remediator.FromHealthCheck, Since: now().Add(-6 * time.Minute)},
		remediator.Decided{
			Machine: victim, Decision: remediator.Decision{Verdict: remediator.RolloutSurge, Relaxed: true, Rule: "e", Reason: "its etcd answers"},
			Evidence: remediator.Evidence{Replicas: 3, Machines: 3, Ready: 2, Voters: 3, Silent: []string{"prod-control-plane-4x7zk"}, PolicyName: "careful"},
		},
		remediator.SurgeRequested{Machine: victim, Method: remediator.RolloutSurge, Relaxed: true, Attempt: 1},
		remediator.ReplacementObserved{Replacement: remediator.Subject{Name: "prod-control-plane-p4x9d", UID: "p"}},
	} {
		s.Apply(e, now().Add(-40*time.Second))
	}
	s.Apply(remediator.EtcdReported{
		Problems:  []remediator.EtcdProblem{{Kind: v1alpha1.EtcdNearQuota, Members: []string{"prod-control-plane-9qwlm"}}},
		Leader:    "prod-control-plane-9qwlm",
		Learners:  []string{"prod-control-plane-4x7zk"},
		Databases: []remediator.Database{{Node: "prod-control-plane-9qwlm", Size: 1700 << 20, InUse: 600 << 20, Quota: 2 << 30}},
	}, now().Add(-30*time.Second))
	o.Policies[0].Spec.DryRun, o.Policies[0].Spec.PauseRequests = false, nil
	o.States = map[types.UID]*remediator.State{victim.UID: s, "k": s}
	o.Owners[0].SetUID("k")
	return o
}

func TestClustersFitATerminal(t *testing.T) {
	for name, width := range map[string]int{"machines-80": 80, "machines-100": 100, "machines-pipe": 0} {
		t.Run(name, func(t *testing.T) {
			pinned.Lines(t, name, width, view{show.View{Width: width, Now: now()}}.clusters(unhealthyFleet().Join(""), tableOptions{Served: true}))
		})
	}
}

// TestMachinesWithTheLog checks that the log adds what happens next, and until when. The narrower the terminal, the
// more of it is shown below the machine.
func TestMachinesWithTheLog(t *testing.T) {
	for name, width := range map[string]int{"logged-60": 60, "logged-80": 80, "logged-120": 120, "logged-220": 220, "logged-pipe": 0} {
		t.Run(name, func(t *testing.T) {
			pinned.Lines(t, name, width, view{show.View{Width: width, Now: now()}}.clusters(withLog(unhealthyFleet()).Join("prod"), tableOptions{Served: true}))
		})
	}
	wide := view{show.View{Now: now()}}.clusters(withLog(unhealthyFleet()).Join("prod"), tableOptions{Served: true, All: true, Wide: true})
	pinned.Lines(t, "logged-wide", 0, wide)
}

// TestAMachineThatIsGone checks that the log explains what is waited for after the owner deleted the machine and before
// its replacement is ready.
func TestAMachineThatIsGone(t *testing.T) {
	o := withLog(unhealthyFleet())
	s := o.States["k"]
	s.Apply(remediator.VictimDeleting{}, now().Add(-20*time.Second))
	s.Apply(remediator.VictimGone{}, now().Add(-10*time.Second))
	o.Machines = slices.DeleteFunc(o.Machines, func(m clusterv1.Machine) bool { return m.Name == "prod-control-plane-h2ttv" })
	o.Remediations = nil
	pinned.Lines(t, "gone-80", 80, view{show.View{Width: 80, Now: now()}}.clusters(o.Join("prod"), tableOptions{Served: true}))
}

func TestClustersWithoutScute(t *testing.T) {
	o := unhealthyFleet()
	o.Served, o.Policies, o.Remediations = false, nil, nil
	pinned.Lines(t, "machines-bare", 80, view{show.View{Width: 80, Now: now()}}.clusters(o.Join("prod"), tableOptions{All: true}))
}

func TestMachineFact(t *testing.T) {
	for _, m := range withLog(unhealthyFleet()).Join("prod")[0].Owners[0].Machines {
		if m.Remediation == nil {
			continue
		}
		want := "Unhealthy (NodeReady is Unknown: Node condition Ready is Unknown); marks delete; Replacing by RolloutSurge (relaxed), rule e; " +
			"next: prod-control-plane deletes prod-control-plane-h2ttv when prod-control-plane-p4x9d is ready; until 2026-07-30 12:24:20Z, then the replacement is cancelled, and scute decides again"
		if got := (view{show.View{Now: now()}}).factOf(m); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestClustersAreColored(t *testing.T) {
	lines := view{show.View{Width: 80, Now: now(), Paint: term.Paint{On: true}}}.clusters(unhealthyFleet().Join("prod"), tableOptions{Served: true})
	if all := strings.Join(lines, "\n"); !strings.Contains(all, "\x1b[31m✗\x1b[0m prod-control-plane-h2ttv") {
		t.Errorf("got %q", all)
	}
	for _, line := range lines {
		if term.Width(line) > 80 {
			t.Errorf("line of %d columns, want at most 80: %q", term.Width(line), line)
		}
	}
}

// TestAlarmIsNoLostQuorum checks that an alarm, for which Cluster API reports every member as unhealthy, is shown as an
// alarm and not as a lost quorum.
func TestAlarmIsNoLostQuorum(t *testing.T) {
	o := unhealthyFleet()
	o.Remediations = nil
	o.Policies[0].Status.Etcd = []v1alpha1.EtcdProblem{{
		ControlPlane: "prod-control-plane", Problem: v1alpha1.EtcdNoSpace, Message: "etcd has the alarm NOSPACE", Next: "etcdctl alarm disarm",
	}}
	text := strings.Join(view{show.View{Now: now()}}.clusters(o.Join("prod"), tableOptions{Served: true}), "\n")
	for _, want := range []string{"according to Cluster API's conditions: etcd has an alarm", "etcd has the alarm NOSPACE", "etcdctl alarm disarm"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestChosenMachinesAreNotAllMachines checks that the number of ready machines does not depend on the selected names.
func TestChosenMachinesAreNotAllMachines(t *testing.T) {
	o := unhealthyFleet()
	p := &snapshot{objects: o, clusters: o.Join("prod")}
	want := p.clusters[0].Owners[0].ready
	r := &reader{options: &options{names: []string{"prod-control-plane-h2ttv"}}}
	if err := r.selectNamed(p); err != nil {
		t.Fatal(err)
	}
	if owners := p.clusters[0].Owners; len(owners) != 1 || len(owners[0].Machines) != 1 || owners[0].ready != want {
		t.Errorf("got %d owners, want %d; %d ready machines, want %d", len(owners), 1, owners[0].ready, want)
	}
}

// TestAMachineThatADryRunFoundUnhealthy checks that a machine without an annotation is shown as unhealthy if the log
// says so.
func TestAMachineThatADryRunFoundUnhealthy(t *testing.T) {
	o := withLog(unhealthyFleet())
	for i := range o.Machines {
		o.Machines[i].Annotations = nil
	}
	o.Policies[0].Spec.DryRun = true
	for _, m := range o.Join("prod")[0].Owners[0].Machines {
		if m.Name != "prod-control-plane-h2ttv" {
			continue
		}
		if got := stateOf(m); got != "Unhealthy" || !m.since().Equal(now().Add(-6*time.Minute)) {
			t.Errorf("state = %s since %s", got, m.since())
		}
	}
}

func TestAMisspelledMachine(t *testing.T) {
	o := unhealthyFleet()
	r := &reader{options: &options{names: []string{"prod-control-plane-h2tv"}}, cluster: &connect.Cluster{Config: &rest.Config{}}, namespace: "fleet"}
	err := r.selectNamed(&snapshot{objects: o, clusters: o.Join("prod")})
	if err == nil || !strings.Contains(err.Error(), `did you mean "prod-control-plane-h2ttv"?`) {
		t.Error(err)
	}
}
