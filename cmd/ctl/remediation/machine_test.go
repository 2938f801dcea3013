package remediation

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/internal/pinned"
	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

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

// machineOf returns a control plane machine.
func machineOf(cluster, name string) clusterv1.Machine {
	yes := true
	m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: name, UID: types.UID(name), CreationTimestamp: ago(72 * time.Hour),
		Labels:          map[string]string{clusterv1.MachineControlPlaneLabel: ""},
		OwnerReferences: []metav1.OwnerReference{{Kind: "KubeadmControlPlane", Name: cluster + "-control-plane", Controller: &yes}},
	}}
	m.Spec.ClusterName = cluster
	m.Status.Phase, m.Status.NodeRef.Name, m.Status.FailureDomain = running, name, "zone-a"
	return m
}

func workerOf(cluster, name string) clusterv1.Machine {
	m := machineOf(cluster, name)
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
	victim := withMark(machineOf("prod", "prod-control-plane-h2ttv"), v1alpha1.UnhealthyMark{
		State: "Scheduled", Since: ago(6 * time.Minute), Reason: "NodeReady is Unknown: Node condition Ready is Unknown", Source: "MachineHealthCheck",
	})
	replacement := machineOf("prod", "prod-control-plane-p4x9d")
	replacement.Status.NodeRef.Name, replacement.Status.Phase, replacement.CreationTimestamp = "", "Provisioning", ago(12*time.Second)
	leaving := machineOf("bare", "bare-control-plane-zzzzz")
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
			machineOf("prod", "prod-control-plane-9qwlm"), victim, replacement, machineOf("prod", "prod-control-plane-4x7zk"),
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
				Quorum:  &v1alpha1.QuorumStatus{Voters: 3, Responding: 2, Tolerates: 0},
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
	s.Apply(remediator.EtcdReported{Leader: "prod-control-plane-9qwlm", Learners: []string{"prod-control-plane-4x7zk"}}, now().Add(-30*time.Second))
	o.Policies[0].Spec.DryRun, o.Policies[0].Spec.PauseRequests = false, nil
	o.States = map[types.UID]*remediator.State{victim.UID: s, "k": s}
	o.Owners[0].SetUID("k")
	return o
}

// machineNamed returns a machine of a fleet.
func machineNamed(t *testing.T, o *Objects, name string) *machine {
	t.Helper()
	list := o.machines()
	i := slices.IndexFunc(list, func(m *machine) bool { return m.Name == name })
	if i < 0 {
		t.Fatalf("there is no machine %s", name)
	}
	return list[i]
}

func viewOf(width int) kit.View { return kit.View{Width: width, Now: now()} }

func tableOf(v kit.View, o *Objects) []string {
	return newMachineNoun(&machineSource{}).Table(v, o.machines(), false, false)
}

func TestMachinesFitATerminal(t *testing.T) {
	for name, width := range map[string]int{"machines-80": 80, "machines-120": 120, "machines-pipe": 0} {
		pinned.Lines(t, name, width, tableOf(viewOf(width), unhealthyFleet()))
	}
}

// TestMachinesWithTheLog checks that the log adds what happens next, and until when. The narrower the terminal, the
// more of it is shown below the machine.
func TestMachinesWithTheLog(t *testing.T) {
	for name, width := range map[string]int{"logged-60": 60, "logged-80": 80, "logged-120": 120, "logged-pipe": 0} {
		pinned.Lines(t, name, width, tableOf(viewOf(width), withLog(unhealthyFleet())))
	}
	pinned.Lines(t, "logged-wide", 0, newMachineNoun(&machineSource{all: true}).Table(viewOf(0), withLog(unhealthyFleet()).machines(), true, true))
}

func TestDescribe(t *testing.T) {
	pinned.Lines(t, "describe-80", 80, describeMachine(viewOf(80), machineNamed(t, withLog(unhealthyFleet()), "prod-control-plane-h2ttv")))
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
	pinned.Lines(t, "gone-80", 80, describeMachine(viewOf(80), machineNamed(t, o, "prod-control-plane-h2ttv")))
}

// TestHealthyWorkers checks that healthy workers are counted, and listed if the user asks for them.
func TestHealthyWorkers(t *testing.T) {
	const worker, count = "prod-md-0-abc-aaaaa", "and 1 running worker: --all lists them"
	for _, c := range []struct{ all, named, listed bool }{{false, false, false}, {true, false, true}, {false, true, true}} {
		list := unhealthyFleet().machines()
		for _, m := range list {
			m.named = c.named && m.Name == worker
		}
		text := strings.Join(newMachineNoun(&machineSource{all: c.all}).Table(viewOf(0), list, false, false), "\n")
		if strings.Contains(text, worker) != c.listed || strings.Contains(text, count) == c.listed {
			t.Errorf("%+v: got\n%s", c, text)
		}
	}
}

// TestAMarkedWorkerIsListed checks that a running worker with a mark is not only counted.
func TestAMarkedWorkerIsListed(t *testing.T) {
	fleet := unhealthyFleet()
	for i := range fleet.Machines {
		if m := &fleet.Machines[i]; m.Name == "prod-md-0-abc-aaaaa" {
			m.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""}
		}
	}
	text := strings.Join(tableOf(viewOf(0), fleet), "\n")
	if !strings.Contains(text, "prod-md-0-abc-aaaaa") || strings.Contains(text, "--all lists them") {
		t.Errorf("the worker with the mark delete is not listed:\n%s", text)
	}
}

func TestMachineFact(t *testing.T) {
	want := "Unhealthy (NodeReady is Unknown: Node condition Ready is Unknown, reported by MachineHealthCheck); marks delete; Replacing by RolloutSurge (relaxed), rule e; " +
		"next: replacement prod-control-plane-p4x9d exists, and is not ready; prod-control-plane deletes the machine when it is; until 2026-07-30 12:24:20Z, then the replacement is cancelled, and scute decides again"
	if got := machineNamed(t, withLog(unhealthyFleet()), "prod-control-plane-h2ttv").fact(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMachinesAreColored(t *testing.T) {
	v := viewOf(80)
	v.Paint = cli.Paint{On: true}
	lines := tableOf(v, unhealthyFleet())
	if all := strings.Join(lines, "\n"); !strings.Contains(all, "\x1b[31mUnhealthy 6m\x1b[0m") {
		t.Errorf("got %q", all)
	}
	for _, line := range lines {
		if cli.Width(line) > 80 {
			t.Errorf("line of %d columns, want at most 80: %q", cli.Width(line), line)
		}
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
	if m := machineNamed(t, o, "prod-control-plane-h2ttv"); m.Health != unhealthy || !m.Since.Equal(now().Add(-6*time.Minute)) {
		t.Errorf("state = %s since %s", m.Health, m.Since)
	}
}
