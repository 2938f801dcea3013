package remediation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"scute.dev/remediator"
	"scute.dev/remediator/runner"
)

func newReport(at time.Time, seq uint64, reason string) runner.Report {
	return runner.Report{
		Owner:        remediator.Owner{Kind: "KubeadmControlPlane", Namespace: "fleet", Name: "cp", UID: "0a1b2c3d-1"},
		Notification: remediator.Notification{Machine: remediator.Subject{Name: "cp-1", UID: "m1"}, Reason: reason, Note: "so it is; next: that"},
		At:           at, Seq: seq,
	}
}

func newReporter() *EventReporter {
	return NewEventReporter("log", "test", slog.New(slog.DiscardHandler))
}

// TestTellerTellsNothingTwice checks that a second daemon that reads the same facts creates no second event, and that
// no event is lost while the API server is unreachable.
func TestTellerTellsNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := eventsv1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		away := 2
		c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if away > 0 {
					away--
					return errors.New("connection refused")
				}
				return c.Create(ctx, o, opts...)
			},
		}).Build()
		requested := newReport(time.Now(), 7, "ReplacementRequested")
		requested.Notification.Owner = true
		succeeded := newReport(time.Now(), 9, "RemediationSucceeded")
		var names [][]string
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			reporter := newReporter()
			done := make(chan struct{})
			go func() { defer close(done); reporter.Run(ctx, c) }()
			reporter.Report(requested)
			reporter.Report(succeeded)
			time.Sleep(10 * time.Second)
			cancel()
			<-done
			names = append(names, namesOf(t, c))
		}
		if diff := cmp.Diff(names[0], names[1]); diff != "" || len(names[0]) != 3 {
			t.Errorf("events = %v\n%s", names[0], diff)
		}
		if first := names[0][0]; !strings.HasPrefix(first, "cp-1.0000000007.00.") {
			t.Errorf("event names are not in the order of the log: %v", names[0])
		}
	})
}

func namesOf(t *testing.T, c client.Client) []string {
	t.Helper()
	var list eventsv1.EventList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	slices.Sort(names)
	return names
}

func TestTellerTellsTheMachineAndItsOwner(t *testing.T) {
	n := newReport(time.Now(), 7, "RemediationFrozen")
	n.Notification.Owner, n.Warning = true, true
	got := newReporter().events(n)
	if len(got) != 2 || got[0].Regarding.Name != "cp-1" || got[0].Related.Name != "cp" || got[1].Regarding.Kind != "KubeadmControlPlane" || got[1].Regarding.APIVersion == "" {
		t.Fatalf("events = %+v", got)
	}
	if got[0].Note != "so it is; next: that" || got[1].Note != "Machine cp-1: so it is; next: that" || got[1].Type != "Warning" || got[0].Name == got[1].Name {
		t.Errorf("events = %+v", got)
	}
	n.Owner.Kind = "RKE2ControlPlane"
	if got := newReporter().events(n); len(got) != 1 || got[0].Related != nil {
		t.Errorf("owner of an unknown kind: events = %+v", got)
	}
}

// TestTellerTellsTheOwnerAlone checks that a fact without a machine, such as one about etcd, is reported for the owner
// and limited like others.
func TestTellerTellsTheOwnerAlone(t *testing.T) {
	n := newReport(time.Now(), 7, "EtcdAlarm")
	n.Machine, n.Notification.Owner = remediator.Subject{}, true
	teller := newReporter()
	if got := teller.events(n); len(got) != 1 || got[0].Regarding.Kind != "KubeadmControlPlane" || got[0].Related != nil || got[0].Note != n.Note {
		t.Errorf("events = %+v", got)
	}
	for range 10 {
		teller.Report(n)
	}
	if len(teller.waiting) != maxRepeats {
		t.Errorf("got %d waiting events of one reason", len(teller.waiting))
	}
	n.Owner.Kind = "RKE2ControlPlane"
	if got := teller.events(n); len(got) != 0 {
		t.Errorf("owner of an unknown kind: events = %+v", got)
	}
}

func TestTellerBoundsWhatRepeats(t *testing.T) {
	now := time.Now()
	reporter := newReporter()
	for i := range 20 {
		reporter.Report(newReport(now.Add(time.Duration(i)*time.Second), uint64(i), "RemediationWaiting"))
	}
	reporter.Report(newReport(now, 21, "RemediationSucceeded"))
	other := newReport(now, 22, "RemediationWaiting")
	other.Machine.UID = "m2"
	reporter.Report(other)
	if len(reporter.waiting) != maxRepeats+2 {
		t.Errorf("got %d waiting events", len(reporter.waiting))
	}
	reporter.Report(newReport(now.Add(-time.Hour), 23, "MachineDeleted"))
	if len(reporter.waiting) != maxRepeats+2 {
		t.Error("an old fact was reported")
	}
	for i := range 2 * maxQueued {
		n := newReport(now, uint64(100+i), "RemediationWaiting")
		n.Machine.UID = types.UID(fmt.Sprint(i))
		reporter.Report(n)
	}
	if len(reporter.waiting) != maxQueued || reporter.lost == 0 {
		t.Errorf("got %d waiting and %d lost events", len(reporter.waiting), reporter.lost)
	}
}
