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
	for _, d := range definitions {
		if _, is := rows[reflect.TypeOf(d.event)]; is {
			t.Errorf("%T is described twice", d.event)
		}
		rows[reflect.TypeOf(d.event)] = len(d.notices) > 0
	}
	for _, e := range unreported {
		if rows[reflect.TypeOf(e)] {
			t.Errorf("%T is both reported and listed in unreported", e)
		}
		rows[reflect.TypeOf(e)] = true
	}
	for name, fact := range NewCatalog().Types() {
		if !rows[fact] {
			t.Errorf("%s is neither reported nor excluded: add a notice to its description and to the table in docs/remediation.md, or add it to unreported", name)
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
		Frozen{Rule: "paused", Reason: "cluster prod is paused", Next: "remove the pause"},
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
HealthCheckFailing: Failing since 2026-07-30T12:00:00Z: NodeReady is Unknown (Policy); next: the machine counts as unhealthy when the timeout of the check has passed
MachineUnhealthy: Unhealthy since 2026-07-30T12:00:00Z: NodeReady is Unknown (Policy); next: scute decides how to replace it
RemediationWaiting: Wait by rule at-once: 3 or more remediations are in progress, the policy's limit; next: scute decides again when the cause has passed
ReplacementRequested: KubeadmControlPlane cp is asked for another machine: RolloutSurge (relaxed); 0 machines before; attempt 1; rule e: its etcd answers; next: cp creates the new machine, and deletes this one when the new one is ready
ReplacementCreated: replacement cp-4 exists, and is not ready; next: it becomes ready
ActionFailed: the API server is away; next: scute retries
RemediationFrozen: frozen by rule paused: cluster prod is paused; next: remove the pause
RemediationResumed: the cause of the freeze has passed; next: the remediation continues
ReplacementReady: replacement cp-4 is ready; next: cp deletes this machine
MachineDeleting: the machine is being deleted; next: scute waits until it is gone and its replacement is ready
RemediationSucceeded: the machine is replaced by cp-4; all machines are ready`), "\n")
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
	for _, d := range definitions {
		for _, n := range d.notices {
			kind, about := "Normal", "Machine"
			if n.to&warning != 0 {
				kind = "Warning"
			}
			if n.to&toOwner != 0 {
				about += ", owner"
			}
			if n.to&onlyOwner != 0 {
				about = "owner"
			}
			fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", n.reason, kind, about, n.when)
		}
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
