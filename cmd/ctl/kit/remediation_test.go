package kit

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// TestWordsOfRemediations checks that every event of the remediator has a text. Update the texts with UPDATE=1.
func TestWordsOfRemediations(t *testing.T) {
	at := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	m, n := remediator.Subject{Name: "cp-1", UID: "1"}, remediator.Subject{Name: "cp-4", UID: "4"}
	seen := remediator.Evidence{Replicas: 3, Machines: 4, Ready: 2, Broken: []string{"cp-1"}, Deleting: []string{"cp-2"}, Voters: 3, Learners: 1, Silent: []string{"cp-1"}, DryRun: true}
	var out strings.Builder
	listed := make(map[reflect.Type]bool)
	for _, e := range []remediator.Event{
		remediator.Registered{Owner: remediator.Owner{Kind: "KubeadmControlPlane", Namespace: "fleet", Name: "prod-cp", UID: "u", Cluster: "prod"}},
		remediator.Claimed{Holder: "daemon/1"},
		remediator.MachineMarked{Machine: m, State: remediator.Failing, Reason: "NodeReady is Unknown", Source: remediator.FromHealthCheck, Since: at},
		remediator.MachineMarkCleared{Machine: m, Reason: "the machine is healthy again"},
		remediator.Decided{Machine: m, Decision: remediator.Decision{Verdict: remediator.RolloutSurge, Relaxed: true, Rule: "surge", Reason: "its etcd answers", Next: "nothing"}, Evidence: seen},
		remediator.Decided{Machine: m, Decision: remediator.Decision{Verdict: remediator.Freeze, Rule: "quorum", Reason: "etcd is silent"}, Evidence: remediator.Evidence{Replicas: 3, Machines: 3, EtcdError: "no connection"}},
		remediator.Decided{Machine: m, Decision: remediator.Decision{Verdict: remediator.Surge, Rule: "e", Reason: "its kubelet is dead"}, Evidence: remediator.Evidence{Replicas: 3, Machines: 3, Voters: 3, Fallbacks: []string{"n1 by client port 10.0.0.7:2379", "n2 by etcdctl in etcd-n3"}}},
		remediator.Decided{Machine: m, Decision: remediator.Decision{Verdict: remediator.Surge, Rule: "external", Reason: "etcd is external"}, Evidence: remediator.Evidence{Replicas: 1, Machines: 1, Ready: 1, External: true}},
		remediator.HoldSet{Machine: m, Until: at, Reason: "forensics"},
		remediator.HoldSet{Machine: m},
		remediator.HoldReleased{Machine: m},
		remediator.AbortRequested{Machine: m},
		remediator.EscalationStarted{Machine: m, Step: "reboot"},
		remediator.EscalationEnded{Machine: m, Step: "reboot"},
		remediator.EscalationEnded{Machine: m, Step: "reboot", Outcome: "Failed", Reason: ".status.phase is Failed"},
		remediator.SurgeRequested{Machine: m, Method: remediator.RolloutSurge, Relaxed: true, From: 3, To: 3, Where: remediator.AtOwner, Trigger: remediator.TriggerCertificates, Original: "o", TriggerValue: "p", Baseline: []remediator.Subject{m}, Attempt: 1},
		remediator.SurgeRequested{Machine: m, Method: remediator.Surge, From: 3, To: 5, Where: remediator.AtTopology, Baseline: []remediator.Subject{m, n}, Attempt: 2},
		remediator.HandedOver{Machine: m, Baseline: []remediator.Subject{m, n}, Attempt: 1},
		remediator.ReplacementObserved{Replacement: n},
		remediator.ReplacementObserved{Replacement: n, Extra: true},
		remediator.ScaleRestored{},
		remediator.Continued{Machine: m},
		remediator.Merged{Machine: m, Reason: "another client set the replicas"},
		remediator.ScaleRaised{},
		remediator.VictimSpared{},
		remediator.ReplacementReady{Replacement: n},
		remediator.VictimDeleting{},
		remediator.SurgeRelaxed{Reason: "API server unhealthy since cp was asked"},
		remediator.DrainSkipped{Since: at, After: "5m0s"},
		remediator.VolumeDetachSkipped{Since: at, After: "5m0s"},
		remediator.VictimGone{},
		remediator.SurgeConsumed{Reason: "cp-2 was deleted by hand"},
		remediator.CancelStarted{Cause: remediator.Recovered, Reason: "the machine is healthy again"},
		remediator.Frozen{Rule: "foreign-replicas", Reason: "replicas were changed", Next: "set them back"},
		remediator.Thawed{},
		remediator.EtcdReported{},
		remediator.DefragmentationWaits{Node: "n1", Reason: "a member of etcd is a learner"},
		remediator.DefragmentationStarted{Node: "n1", Leader: true, Before: remediator.Database{Node: "n1", Size: 400 << 20, InUse: 100 << 20}, Reason: "much is free", Until: at},
		remediator.DefragmentationEnded{Node: "n1", Outcome: remediator.DefragmentationDone, Before: remediator.Database{Node: "n1", Size: 400 << 20, InUse: 100 << 20}, After: remediator.Database{Node: "n1", Size: 100 << 20, InUse: 100 << 20}, Next: "etcdctl alarm disarm"},
		remediator.DefragmentationEnded{Node: "n1", Outcome: remediator.DefragmentationTimedOut, Before: remediator.Database{Node: "n1", Size: 400 << 20}, Reason: "it does not answer"},
		remediator.NoSpaceDisarmed{Members: []string{"n1"}},
		remediator.EtcdReported{
			Problems: []remediator.EtcdProblem{{Kind: v1alpha1.EtcdNoSpace, Members: []string{"n1"}}}, Leader: "n2", Learners: []string{"n3"},
			Databases: []remediator.Database{{Node: "n1", Size: 2 << 30, InUse: 1 << 30, Quota: 2 << 30}},
		},
		remediator.Succeeded{Note: "all machines are ready"},
		remediator.Cancelled{Cause: remediator.TimedOut},
		remediator.TransientFailure{Message: "the API server is gone"},
		remediator.ClockSetBack{By: "5h0m0s"},
		remediator.PolicyMassFailurePassed{},
		remediator.Admitted{Holder: "scuted-1", Owner: remediator.Owner{Kind: "KubeadmControlPlane", Namespace: "fleet", Name: "cp"}},
		remediator.MassFailurePassed{Domain: "zone-a"},
		remediator.MassFailurePassed{},
	} {
		listed[reflect.TypeOf(e)] = true
		ev, err := remediator.NewCatalog().Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		f := lineOf(eventlog.KindRemediation, ev)
		out.WriteString(strings.TrimRight(f.Name+" | "+f.Text(), " ") + "\n")
	}
	for name, event := range remediator.NewCatalog().Types() {
		if !listed[event] {
			t.Errorf("add %s to the list above, and the description of %s to remediator/describe.go", event, name)
		}
	}
	const golden = "testdata/remediation.golden"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Error(diff)
	}
}
