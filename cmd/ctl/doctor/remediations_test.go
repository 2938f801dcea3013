package doctor

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/remediation"
	"scute.dev/kube/object"
	"scute.dev/remediator/ownerkind"
)

func at() time.Time { return time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC) }

func meta1(name string, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "fleet", Name: name, CreationTimestamp: metav1.NewTime(at().Add(-time.Hour)), Annotations: annotations,
		Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"},
	}
}

func machineOf(cluster, name string, annotations map[string]string) clusterv1.Machine {
	return clusterv1.Machine{ObjectMeta: meta1(name, annotations), Spec: clusterv1.MachineSpec{ClusterName: cluster}}
}

func markOf(t *testing.T, state string, since time.Duration) map[string]string {
	value, err := json.Marshal(v1alpha1.UnhealthyMark{State: state, Since: metav1.NewTime(at().Add(-since))})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{v1alpha1.UnhealthyAnnotation: string(value)}
}

func formatResults(l *inventory) []string {
	l.now, l.Served = at(), true
	l.kit = &kit.Kit{Env: cli.System("scutectl", "test"), Flags: connect.New()}
	var out []string
	for _, r := range l.results() {
		line := r.Level.String() + " " + r.Subject + ": " + r.Message
		if r.Level != levelOK && r.Remedy == "" {
			line += " (WITHOUT A REMEDY)"
		}
		out = append(out, line)
	}
	return out
}

func controlPlane(annotations map[string]string) []ownerkind.Owner {
	owner, _ := ownerkind.As(&controlplanev1.KubeadmControlPlane{ObjectMeta: meta1("prod-cp", annotations)})
	return []ownerkind.Owner{owner}
}

func TestWhatRemediationsLeaveBehind(t *testing.T) {
	check := clusterv1.MachineHealthCheck{ObjectMeta: meta1("mhc", nil)}
	check.Spec.ClusterName, check.Spec.Remediation.TemplateRef.Kind = "prod", "SurgeRemediationTemplate"
	l := &inventory{checks: []clusterv1.MachineHealthCheck{check}, Objects: &remediation.Objects{
		Clusters: []clusterv1.Cluster{{ObjectMeta: meta1("prod", nil)}},
		Machines: []clusterv1.Machine{
			machineOf("prod", "a", markOf(t, "Unhealthy", time.Hour)),
			machineOf("prod", "b", map[string]string{clusterv1.DeleteMachineAnnotation: "scute.dev"}),
			machineOf("prod", "c", map[string]string{clusterv1.DeleteMachineAnnotation: "yes"}), // of another client
			machineOf("prod", "d", markOf(t, "Failing", time.Hour)),                             // its timeout has not expired
			machineOf("prod", "e", markOf(t, "Unhealthy", time.Second)),                         // just written
			machineOf("edge", "f", markOf(t, "Unhealthy", time.Hour)),                           // a policy selects its cluster
		},
		Owners: controlPlane(map[string]string{
			controlplanev1.RemediationInProgressAnnotation: `{"machine":"a","timestamp":"2026-07-30T11:30:00Z","retryCount":0}`,
			object.TouchAnnotation:                         "x",
		}),
		Remediations: []v1alpha1.SurgeRemediation{
			{ObjectMeta: meta1("gone", nil), Status: v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationSucceeded}},
			{ObjectMeta: meta1("mistyped", nil)}, // created by hand for a machine that does not exist
			{ObjectMeta: meta1("f", nil), Status: v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationFailed, Message: "no way", Next: "by hand"}},
		},
		Policies: []v1alpha1.RepairPolicy{{
			ObjectMeta: meta1("careful", nil), Status: v1alpha1.RepairPolicyStatus{MassFailure: true, Message: "9 of 10 are unhealthy"},
			Spec: v1alpha1.RepairPolicySpec{
				DryRun: true, PauseRequests: []string{"change freeze"}, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "edge"}},
			},
		}},
	}}
	want := []string{
		"warning policies: fleet/careful starts no remediation: change freeze",
		"warning policies: fleet/careful is a dry run: it records decisions and changes nothing",
		"warning policies: fleet/careful: 9 of 10 are unhealthy",
		"warning remediations: fleet/gone is the remediation of a machine that does not exist",
		"warning remediations: fleet/mistyped is the remediation of a machine that does not exist",
		"problem remediations: fleet/f is Failed: no way",
		"problem health checks: MachineHealthCheck fleet/mhc asks scute to remediate, and no RepairPolicy selects Cluster prod: its machines are never replaced",
		"warning machines: fleet/a has scute.dev/unhealthy, and no remediation of its cluster is open",
		"warning machines: fleet/b has cluster.x-k8s.io/delete-machine, and no remediation of its cluster is open",
		"warning machines: KubeadmControlPlane fleet/prod-cp has controlplane.cluster.x-k8s.io/remediation-in-progress, and nothing is in progress",
		"warning machines: KubeadmControlPlane fleet/prod-cp has scute.dev/touched, and no remediation is in progress",
	}
	if diff := cmp.Diff(want, formatResults(l)); diff != "" {
		t.Error(diff)
	}
}

// TestMarksOfAnOpenRemediationAreInOrder checks that annotations are not reported while a remediation is in progress.
func TestMarksOfAnOpenRemediationAreInOrder(t *testing.T) {
	l := &inventory{Objects: &remediation.Objects{
		Clusters: []clusterv1.Cluster{{ObjectMeta: meta1("prod", nil)}},
		Machines: []clusterv1.Machine{machineOf("prod", "a", markOf(t, "Scheduled", time.Hour)), machineOf("prod", "new", map[string]string{clusterv1.DeleteMachineAnnotation: "scute.dev"})},
		Owners: controlPlane(map[string]string{
			controlplanev1.RemediationInProgressAnnotation: `{}`, object.TouchAnnotation: "x",
		}),
		Remediations: []v1alpha1.SurgeRemediation{{ObjectMeta: meta1("a", nil), Status: v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationSurging}}},
		Policies:     []v1alpha1.RepairPolicy{{ObjectMeta: meta1("all", nil)}},
	}}
	want := []string{"ok policies: 1 RepairPolicy, none paused or a dry run", "ok remediations: 1 open, 1 in total; no annotation is left over"}
	if diff := cmp.Diff(want, formatResults(l)); diff != "" {
		t.Error(diff)
	}
}

func TestHealthChecksWithoutTheirTemplate(t *testing.T) {
	check := func(name, template string) clusterv1.MachineHealthCheck {
		c := clusterv1.MachineHealthCheck{ObjectMeta: meta1(name, nil)}
		c.Spec.ClusterName, c.Spec.Remediation.TemplateRef.Kind, c.Spec.Remediation.TemplateRef.Name = "prod", "SurgeRemediationTemplate", template
		return c
	}
	l := &inventory{
		checks:    []clusterv1.MachineHealthCheck{check("well", "scute-all"), check("lost", "gone")},
		templates: []v1alpha1.SurgeRemediationTemplate{{ObjectMeta: meta1("scute-all", nil)}},
		Objects: &remediation.Objects{
			Clusters: []clusterv1.Cluster{{ObjectMeta: meta1("prod", nil)}},
			Policies: []v1alpha1.RepairPolicy{{ObjectMeta: meta1("all", nil)}},
		},
	}
	want := []string{
		"ok policies: 1 RepairPolicy, none paused or a dry run",
		"problem health checks: MachineHealthCheck fleet/lost refers to SurgeRemediationTemplate gone, which does not exist: it requests no remediation",
	}
	if diff := cmp.Diff(want, formatResults(l)); diff != "" {
		t.Error(diff)
	}
}

func TestNothingToTellWithoutScutesKinds(t *testing.T) {
	results := (&inventory{Objects: &remediation.Objects{}}).results()
	if len(results) != 1 || results[0].Level != levelWarning || !strings.Contains(results[0].Message, "not served here") {
		t.Errorf("results = %+v", results)
	}
}

func TestLimitsThatKeepSomethingFromBeginning(t *testing.T) {
	limits := v1alpha1.RepairLimits{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.RepairLimitsName},
		Spec:       v1alpha1.RepairLimitsSpec{PauseRequests: []string{"network works"}},
		Status: v1alpha1.RepairLimitsStatus{Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionMassFailure, Status: metav1.ConditionTrue, Reason: "FailureDomains", Message: "no replacement is created in a (60 of 100 machines)"},
			{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Message: "spec.window cannot be read"},
		}},
	}
	want := []string{
		"ok policies: no RepairPolicy: scute does not change any machine",
		"warning limits: RepairLimits stops all new remediations: network works",
		"warning limits: mass failure (FailureDomains): no replacement is created in a (60 of 100 machines)",
		"problem limits: RepairLimits is stalled: spec.window cannot be read",
		"ok remediations: 0 open, 0 in total; no annotation is left over",
	}
	if diff := cmp.Diff(want, formatResults(&inventory{Objects: &remediation.Objects{Limits: &limits}})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
