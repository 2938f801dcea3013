package remediator

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestEveryFactIsReportedOrExcluded checks that each type of fact in the log is reported to users or listed in
// unreported.
func TestEveryFactIsReportedOrExcluded(t *testing.T) {
	rows := map[reflect.Type]bool{}
	for _, row := range notificationRules {
		rows[reflect.TypeOf(row.fact)] = true
	}
	for _, e := range unreported {
		if rows[reflect.TypeOf(e)] {
			t.Errorf("%T is both reported and listed in unreported", e)
		}
		rows[reflect.TypeOf(e)] = true
	}
	for name, fact := range NewCatalog().Types() {
		if !rows[fact] {
			t.Errorf("%s is neither reported nor excluded: add it to notificationRules and to the table in docs/remediation.md, or to unreported", name)
		}
	}
}

// TestNotificationsAreDocumented checks that docs/remediation.md contains the table of notifications.
func TestNotificationsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/remediation.md")
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	writeNotifications(&table)
	if !bytes.Contains(page, table.Bytes()) {
		t.Errorf("docs/remediation.md does not have this table:\n%s", &table)
	}
}

// TestAboutNamesTheMachine checks that SubjectOf returns the machine that an event names, whatever remediation is in
// progress.
func TestAboutNamesTheMachine(t *testing.T) {
	subject := Subject{Name: "cp-2", UID: "2"}
	s := &State{Active: &Active{Victim: Subject{Name: "cp-1", UID: "1"}}}
	for name, event := range NewCatalog().Types() {
		e := reflect.New(event).Elem()
		machine := e.FieldByName("Machine")
		if !machine.IsValid() {
			continue
		}
		machine.Set(reflect.ValueOf(subject))
		if got := SubjectOf(s, e.Interface().(Event)); got != subject {
			t.Errorf("About(%s) = %s: add the method machine to the event", name, got.Name)
		}
	}
}

// TestNotificationsOfARemediation checks the notifications of one complete remediation.
func TestNotificationsOfARemediation(t *testing.T) {
	victim, replacement := Subject{Name: "cp-1", UID: "1"}, Subject{Name: "cp-4", UID: "4"}
	since := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	mark := MachineMarked{Machine: victim, State: Failing, Reason: "NodeReady is Unknown", Source: FromPolicy, Since: since}
	unhealthy, scheduled := mark, mark
	unhealthy.State, scheduled.State = Unhealthy, Scheduled
	again := unhealthy
	again.Source = FromHealthCheck
	waiting := Decision{Verdict: Wait, Rule: "at-once", Reason: "3 or more remediations are in progress, the policy's limit"}
	surge := Decision{Verdict: RolloutSurge, Relaxed: true, Rule: "e", Reason: "its etcd answers"}
	s := &State{}
	var got []string
	owners := 0
	for _, e := range []Event{
		Registered{Owner: Owner{Kind: "KubeadmControlPlane", Namespace: "fleet", Name: "cp", UID: "u"}},
		Claimed{},
		mark, unhealthy,
		Decided{Machine: victim, Decision: waiting},
		Decided{Machine: victim, Decision: surge},
		SurgeRequested{Machine: victim, Method: RolloutSurge, Relaxed: true, Attempt: 1},
		again, scheduled,
		ReplacementObserved{Replacement: replacement},
		ReplacementObserved{Replacement: replacement, Extra: true},
		TransientFailure{Message: "the API server is away"},
		Frozen{Rule: "paused", Reason: "cluster prod is paused", Next: "lift the pause"},
		Thawed{},
		ReplacementReady{Replacement: replacement},
		VictimDeleting{},
		VictimGone{},
		Succeeded{Note: "all machines are ready"},
	} {
		if n, ok := NotificationOf(s, e); ok {
			if n.Machine != victim {
				t.Errorf("%T: got notification about %v", e, n.Machine)
			}
			if n.Owner {
				owners++
			}
			got = append(got, n.Reason+": "+n.Note)
		}
		s.Apply(e, since)
	}
	want := strings.Split(strings.TrimSpace(`
HealthCheckFailing: NodeReady is Unknown since 2026-07-30T12:00:00Z, says Policy; next: the machine is unhealthy when the time of the check is over
MachineUnhealthy: NodeReady is Unknown since 2026-07-30T12:00:00Z, says Policy; next: scute decides how it is replaced
RemediationWaiting: Wait by rule at-once: 3 or more remediations are in progress, the policy's limit; next: it is decided again when that has passed
ReplacementRequested: KubeadmControlPlane cp is asked for another machine (RolloutSurge (relaxed) by rule e: its etcd answers); next: it creates one, and deletes this machine when that one is ready
ReplacementCreated: Machine cp-4 exists and is not ready; next: cp deletes this machine when it is ready
ActionFailed: the API server is away; next: it is tried again
RemediationFrozen: Frozen by rule paused: cluster prod is paused; next: lift the pause
RemediationResumed: What froze it has passed; the remediation continues
ReplacementReady: Machine cp-4 is ready; next: cp deletes this machine
MachineDeleting: The machine is being deleted; next: its place is taken when it is gone
RemediationSucceeded: Replaced by cp-4; all machines are ready`), "\n")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got notifications\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if all := len(got) + owners; all >= 15 {
		t.Errorf("got %d events for one remediation, want fewer than 15", all)
	}
}

// writeNotifications writes the Markdown table of notifications for docs/remediation.md.
func writeNotifications(w io.Writer) {
	fmt.Fprint(w, "| reason | type | about | when |\n|---|---|---|---|\n")
	for _, t := range notificationRules {
		kind, about := "Normal", "Machine"
		if t.warning {
			kind = "Warning"
		}
		if t.owner {
			about += ", owner"
		}
		if t.ownerOnly {
			about = "owner"
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", t.reason, kind, about, t.when)
	}
}

// unreported are the events that are not reported to users.
//
//nolint:gochecknoglobals // a table
var unreported = []Event{
	Registered{},
	Claimed{},
	Admitted{},
	Continued{},
	SurgeRelaxed{},
	ScaleRaised{},
	ScaleRestored{},
	VictimSpared{},
	ClockSetBack{},
	PolicyMassFailurePassed{},
	MassFailurePassed{},
}
