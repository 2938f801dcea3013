package app

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"scute.dev/aggregate"
	"scute.dev/controllers/remediation"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/mover"
	moves "scute.dev/mover/runner"
	"scute.dev/mover/transfer"
	"scute.dev/remediator"
)

// TestAMoveSeesWhatTheLogHolds checks that a move sees all remediations that were in the log when it asked, even if the
// view is behind.
func TestAMoveSeesWhatTheLogHolds(t *testing.T) {
	log := logtest.Open(t)
	v := newViews(usageLimits{})
	d := &daemon{view: v, projector: aggregate.NewProjector(log, "test", v, slog.New(slog.DiscardHandler))}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	defer func() { cancel(); <-ended }()
	asked, answers := make(chan struct{}), make(chan []transfer.Remediation, 1)
	head := func(ctx context.Context) (uint64, error) {
		defer close(asked)
		return log.Head(ctx)
	}
	recordBegun(t, log)
	go func() {
		list, err := d.remediationLister(head, false)(ctx)
		if err != nil {
			t.Error(err)
		}
		answers <- list
	}()
	<-asked
	go func() { ended <- d.projector.Run(ctx) }()
	list := <-answers
	if len(list) != 1 || list[0].Owner != "kcp-uid" || list[0].Machine != "m2" || list[0].ID == "" || list[0].Message == "" || list[0].Next == "" {
		t.Errorf("got %+v", list)
	}
}

// TestACommitOfAMoveInProgressLooksForNoOwner checks that only the end of a move looks through the
// owners of machines: a move appends many commits, and the view waits meanwhile.
func TestACommitOfAMoveInProgressLooksForNoOwner(t *testing.T) {
	log := logtest.Open(t)
	v := newViews(usageLimits{})
	d := &daemon{view: v, projector: aggregate.NewProjector(log, "test", v, slog.New(slog.DiscardHandler))}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	defer func() { cancel(); <-ended }()
	go func() { ended <- d.projector.Run(ctx) }()
	const move = "fleet/m/1"
	if err := (&moves.Runner{Log: log}).Request(ctx, move, "test", mover.Spec{Namespace: "fleet", Name: "m"}); err != nil {
		t.Fatal(err)
	}
	feed := remediation.NewEventSource("test")
	allocations := func() float64 {
		head, err := log.Head(ctx)
		if err = errors.Join(err, d.projector.WaitFor(ctx, head)); err != nil {
			t.Fatal(err)
		}
		<-d.projector.CaughtUp()
		return testing.AllocsPerRun(100, func() { d.enqueueAfterMove(feed, move) })
	}
	without := allocations()
	recordBegun(t, log)
	if with := allocations(); with != without || len(v.Remediations.Pending()) != 1 {
		t.Errorf("%v allocations with an owner that waits, %v without", with, without)
	}
}

// recordBegun records the start of a remediation.
func recordBegun(t *testing.T, log *eventlog.Log) {
	t.Helper()
	owner := remediator.Owner{Kind: string(remediator.ControlPlane), Namespace: "fleet", Name: "a", UID: "kcp-uid", Cluster: "a"}
	victim := remediator.Subject{Name: "m2", UID: "m2"}
	catalog := remediator.NewCatalog()
	commit := eventlog.Commit{Aggregate: eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: owner.ID()}}
	for _, e := range []remediator.Event{
		remediator.Registered{Owner: owner},
		remediator.MachineMarked{Machine: victim, State: remediator.Unhealthy, Reason: "x"},
		remediator.SurgeRequested{Machine: victim, Method: remediator.Surge, From: 3, To: 5},
	} {
		ev, err := catalog.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		ev.Time, ev.Actor = time.Now(), "test"
		commit.Events = append(commit.Events, ev)
	}
	commit.ID = commit.IDFor("test")
	if _, err := log.Append(t.Context(), commit); err != nil {
		t.Fatal(err)
	}
}
