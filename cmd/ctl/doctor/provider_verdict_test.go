package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

const infra = "infrastructure.cluster.x-k8s.io"

func subjectOf(group, kind, name string, paused object.ConditionStatus) pause.Subject {
	o := object.Observed{Ref: object.Ref{Group: group, Kind: kind, Namespace: "fleet", Name: name}, Paused: paused}
	if group == object.CoreGroup && kind == "Cluster" {
		o.Cluster = &object.ClusterFacts{}
	}
	return pause.Subject{Observed: o, Cluster: "test"}
}

func subjects(sleeper object.ConditionStatus) []pause.Subject {
	return []pause.Subject{
		subjectOf(object.CoreGroup, "Cluster", "test", object.False),
		subjectOf(infra, "WellMachine", "a", object.False), subjectOf(infra, "WellMachine", "b", object.False),
		subjectOf(infra, "WellMachineTemplate", "a", object.Absent), subjectOf(infra, "Identity", "a", object.Absent),
		subjectOf(infra, "MuteCluster", "a", object.Absent), subjectOf(infra, "HeldCluster", "a", object.False),
		subjectOf(infra, "StuckCluster", "a", object.False), subjectOf(infra, "SleepyCluster", "a", sleeper), subjectOf(infra, "GoneCluster", "a", object.False),
	}
}

// status returns the status of the Pause at the end of the wait.
func status() v1alpha1.PauseStatus {
	kind := func(name string, acked, pending int, signal ...string) v1alpha1.PauseKind {
		return v1alpha1.PauseKind{Kind: name, Acknowledged: acked, Pending: pending, Signals: signal, Slowest: &metav1.Duration{Duration: 1234 * time.Millisecond}}
	}
	held := kind("HeldCluster."+infra, 0, 1)
	held.BlockMove = true
	return v1alpha1.PauseStatus{
		Kinds: []v1alpha1.PauseKind{
			kind("Cluster.cluster.x-k8s.io", 1, 0, "condition"), kind("WellMachine."+infra, 2, 0, "condition"), kind("WellMachineTemplate."+infra, 1, 0, "assumed"),
			kind("Identity."+infra, 1, 0, "assumed"), kind("MuteCluster."+infra, 1, 0, "assumed"), held, kind("StuckCluster."+infra, 0, 1),
			kind("SleepyCluster."+infra, 1, 0, "condition"),
		},
		WaitingFor: []v1alpha1.PauseWaiting{
			{Object: "HeldCluster." + infra + " fleet/a", Message: "its provider still blocks it with annotation " + object.BlockMoveAnnotation},
			{Object: "StuckCluster." + infra + " fleet/a", Message: "condition Paused is False"},
		},
	}
}

func TestEachKindIsJudged(t *testing.T) {
	kinds := checkResumed(judge(survey(subjects(object.False)), status(), []string{"Identity." + infra}), subjects(object.True))
	got := make(map[string]string)
	for _, k := range kinds {
		name, _, _ := strings.Cut(k.Kind, ".")
		got[name] = string(k.Answer)
		if !k.Passed {
			got[name] += "; " + k.Reason
		}
		if k.Passed != (k.Remedy == "") {
			t.Errorf("%s: passed = %t with remedy %q", k.Kind, k.Passed, k.Remedy)
		}
	}
	want := map[string]string{
		"Cluster": "acknowledged", "WellMachine": "acknowledged", "WellMachineTemplate": "none needed", "Identity": "none needed",
		"MuteCluster":   "no signal; it has no condition Paused: a pause or a move counts it as acknowledged at once, whatever its controller does",
		"HeldCluster":   "never; fleet/a: its provider still blocks it with annotation " + object.BlockMoveAnnotation,
		"StuckCluster":  "never; fleet/a: condition Paused is False",
		"SleepyCluster": "acknowledged; fleet/a still has condition Paused=True after the pause",
		"GoneCluster":   "never; its objects were not checked, or were deleted during the check",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWhatAUserPausedSleeps checks that an object that a user paused is not expected to be unpaused.
func TestWhatAUserPausedSleeps(t *testing.T) {
	sleeping := subjectOf(infra, "WellMachine", "a", object.True)
	sleeping.PausedByUser = true
	if k := checkResumed([]providerKind{{Kind: "WellMachine." + infra, Passed: true}}, []pause.Subject{sleeping}); k[0].StillPaused != 0 || !k[0].Passed {
		t.Errorf("awoken = %+v", k)
	}
}

func TestTheTableFits(t *testing.T) {
	r := &providerReport{Measured: true, Kinds: checkResumed(judge(survey(subjects(object.False)), status(), nil), subjects(object.False))}
	for _, line := range r.lines(kit.View{Width: 80}) {
		if cli.Width(line) > 80 {
			t.Errorf("line of %d columns, want at most 80: %s", cli.Width(line), line)
		}
	}
	table := strings.Join(r.lines(kit.View{}), "\n")
	for _, want := range []string{
		"  KIND                 OBJECTS  ANSWER        BY         AFTER  RESUMED\ncluster.x-k8s.io\n  Cluster              1        acknowledged  condition  1.2s   yes\n" + infra + "\n",
		"\n  StuckCluster         1        never         -          -      yes\n", "\n  WellMachineTemplate  1        none needed   -          -      -\n",
		"\n\nStuckCluster." + infra + ": fleet/a: condition Paused is False\n→ check that its controller runs",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
}

func TestWhatCannotBeChecked(t *testing.T) {
	paused, marked, held := subjects(object.False), subjects(object.False), subjects(object.False)
	paused[0].Observed.Cluster = &object.ClusterFacts{Paused: true}
	marked[0].MoveID = "fleet/go/1"
	held[0].PauseHolders = map[string]string{object.PausePrefix + "1a": "fleet/maintenance"}
	for want, below := range map[string][]pause.Subject{
		"there is no such Cluster": nil, "is already paused": paused, "is part of move fleet/go/1": marked, "is paused by Pause fleet/maintenance": held,
	} {
		if err := checkNotPaused(below, "fleet", "test"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("free = %v, want %q", err, want)
		}
	}
	if err := checkNotPaused(subjects(object.False), "fleet", "test"); err != nil {
		t.Error(err)
	}
}
