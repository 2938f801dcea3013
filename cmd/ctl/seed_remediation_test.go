package main

import (
	"context"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// machineEvents returns the events of a remediation of the given name, or nil.
func machineEvents(name string) []remediator.Event {
	owner := remediator.Owner{Kind: string(remediator.ControlPlane), Namespace: "fleet", Name: name + "-cp", UID: "0a1b2c3d-0000", Cluster: name}
	victim, replacement := remediator.Subject{Name: name + "-cp-1", UID: "1"}, remediator.Subject{Name: name + "-cp-4", UID: "4"}
	baseline := []remediator.Subject{victim, {Name: name + "-cp-2", UID: "2"}, {Name: name + "-cp-3", UID: "3"}}
	at := time.Date(2026, 7, 30, 11, 55, 0, 0, time.UTC)
	marked := []remediator.Event{
		remediator.Registered{Owner: owner},
		remediator.Claimed{Holder: "test-1"},
		remediator.MachineMarked{Machine: victim, State: remediator.Failing, Reason: "NodeReady is Unknown", Source: remediator.FromPolicy, Since: at},
		remediator.MachineMarked{Machine: victim, State: remediator.Unhealthy, Reason: "NodeReady is Unknown", Source: remediator.FromHealthCheck, Since: at},
	}
	seen := remediator.Evidence{Replicas: 3, Machines: 3, Ready: 2, Broken: []string{victim.Name}, Voters: 3, PolicyName: "careful"}
	switch name {
	case "replaced":
		return append(marked,
			remediator.Decided{Machine: victim, Evidence: seen, Decision: remediator.Decision{Verdict: remediator.RolloutSurge, Relaxed: true, Rule: "relaxed", Reason: "its etcd answers, its kubelet is dead"}},
			remediator.MachineMarked{Machine: victim, State: remediator.Scheduled, Reason: "NodeReady is Unknown", Source: remediator.FromHealthCheck, Since: at},
			remediator.SurgeRequested{Machine: victim, Method: remediator.RolloutSurge, Relaxed: true, From: 3, To: 3, Where: remediator.AtOwner, Trigger: remediator.TriggerCertificates, Baseline: baseline, Attempt: 1},
			remediator.ReplacementObserved{Replacement: replacement},
			remediator.ReplacementReady{Replacement: replacement},
			remediator.VictimDeleting{}, remediator.VictimGone{},
			remediator.Succeeded{Note: "three machines, all well"})
	case "frozen":
		seen.Silent = []string{victim.Name, name + "-cp-2"}
		return append(marked, remediator.Decided{Machine: victim, Evidence: seen, Decision: remediator.Decision{
			Verdict: remediator.Freeze, Rule: "quorum-lost", Reason: "1 of 3 voters answer: no majority", Next: "bring a member back by hand",
		}})
	default:
		return nil
	}
}

// appendMachineStory appends the events of a remediation, one commit each.
func appendMachineStory(ctx context.Context, log *eventlog.Log, name string, events []remediator.Event, now func() time.Time) error {
	root := aggregate.Root[remediator.Event, *remediator.State]{
		Log: log, Catalog: remediator.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: "fleet/" + name + "-cp/0a1b2c3d"},
		Actor: "daemon/test-1", Now: now, Links: remediator.Links, State: &remediator.State{},
	}
	for _, e := range events {
		if err := root.Append(ctx, e); err != nil {
			return err
		}
	}
	return nil
}
