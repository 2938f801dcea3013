package push

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
)

// Log is what a push needs of either log.
type Log interface {
	Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error)
	Read(ctx context.Context, a eventlog.Aggregate, after uint64) ([]eventlog.Record, error)
}

// Push is one run on its way. Its fields are set before use.
type Push struct {
	// From is the log of a folder, which nobody else has open; To is the cluster's.
	From, To Log
	// Run is its id, the same in both.
	Run string
	// Actor is who hands it over, FromName and ToName are the logs in words.
	Actor, FromName, ToName string
	// Copied is told of each commit; nil tells nobody.
	Copied func(done, all int)
}

// ErrOther says that the log there has another run of this id.
var ErrOther = errors.New("the log there has something else under this id")

// Check finds out whether the run can be handed over, before anything is changed.
func (p *Push) Check(ctx context.Context) (*workflow.State, error) {
	state, _, err := p.runner(p.From).State(ctx, p.Run)
	switch {
	case err != nil:
		return nil, err
	case !state.Known():
		return nil, fmt.Errorf("the log of %s does not have run %s, or not all of its definition", p.FromName, p.Run)
	case state.HandedOver != "" && state.HandedOver != p.ToName:
		return nil, fmt.Errorf("run %s was handed over to %s, not to %s: push it there", p.Run, state.HandedOver, p.ToName)
	}
	for i := range state.Tasks() {
		if t := state.Task(i); t.Kind == "Move" && t.Attempts > 0 && !over(t.Phase) {
			return nil, fmt.Errorf("task %s is a move that is in progress, and its events are in this folder: let it end here first (scutectl resume run --local)", t.Name)
		}
	}
	_, _, err = p.there(ctx)
	return state, err
}

// Do seals the run here, copies it, and lets it continue there. It tells how many commits were there before.
func (p *Push) Do(ctx context.Context) (before int, err error) {
	state, _, err := p.runner(p.From).State(ctx, p.Run)
	if err != nil {
		return 0, err
	}
	if state.HandedOver == "" && !state.Finished() {
		if err := p.runner(p.From).Command(ctx, p.Run, p.Actor, workflow.HandOver{To: p.ToName}); err != nil {
			return 0, fmt.Errorf("sealing run %s: %w", p.Run, err)
		}
	}
	if before, err = p.copy(ctx); err != nil {
		return before, err
	}
	state, _, err = p.runner(p.To).State(ctx, p.Run)
	if err != nil || state.HandedOver == "" {
		return before, err
	}
	if err := p.runner(p.To).Command(ctx, p.Run, p.Actor, workflow.Receive{From: p.FromName}); err != nil {
		return before, fmt.Errorf("letting run %s continue: %w", p.Run, err)
	}
	return before, nil
}

func (p *Push) runner(log Log) *runner.Runner {
	return &runner.Runner{Log: log, Logger: slog.New(slog.DiscardHandler)}
}

func (p *Push) aggregate() eventlog.Aggregate {
	return eventlog.Aggregate{Kind: eventlog.KindRun, ID: p.Run}
}

// arrival is the id of the commit that comes first there: it says that the run is not to be touched before all of it has
// arrived.
func (p *Push) arrival() string { return p.Run + "/arrival" }

// there reads both sides, and compares them commit by commit.
func (p *Push) there(ctx context.Context) (here, there []eventlog.Record, err error) {
	if here, err = p.From.Read(ctx, p.aggregate(), 0); err != nil {
		return nil, nil, fmt.Errorf("reading run %s here: %w", p.Run, err)
	}
	if there, err = p.To.Read(ctx, p.aggregate(), 0); err != nil {
		return nil, nil, fmt.Errorf("reading run %s there: %w", p.Run, err)
	}
	if len(there) > 0 && there[0].CommitID != p.arrival() {
		return nil, nil, fmt.Errorf("run %s: %w: commit %s", p.Run, ErrOther, there[0].CommitID)
	}
	for i := 1; i < len(there) && i <= len(here); i++ {
		if there[i].CommitID != here[i-1].CommitID {
			return nil, nil, fmt.Errorf("run %s: %w: commit %s where commit %s should be", p.Run, ErrOther, there[i].CommitID, here[i-1].CommitID)
		}
	}
	return here, there, nil
}

// copy appends what is not there yet.
func (p *Push) copy(ctx context.Context) (before int, err error) {
	here, there, err := p.there(ctx)
	if err != nil {
		return 0, err
	}
	var last uint64
	if len(there) > 0 {
		last = there[len(there)-1].Seq
	} else if last, err = p.arrive(ctx); err != nil {
		return 0, err
	}
	before = max(0, min(len(there)-1, len(here)))
	for i := before; i < len(here); i++ {
		events, err := here[i].Events()
		if err != nil {
			return before, fmt.Errorf("reading commit %s: %w", here[i].CommitID, err)
		}
		disown(events)
		receipt, err := p.To.Append(ctx, eventlog.Commit{Aggregate: p.aggregate(), ID: here[i].CommitID, Expected: last, Events: events})
		if err != nil {
			return before, fmt.Errorf("copying commit %s (%d of %d): %w: do it again, and it continues from there", here[i].CommitID, i+1, len(here), err)
		}
		last = receipt.Seq
		if p.Copied != nil {
			p.Copied(i+1, len(here))
		}
	}
	return before, nil
}

// disown marks the actors of a folder's events as local: no API server authenticated them, and a daemon of the folder is not a daemon of
// the cluster.
func disown(events []eventlog.Event) {
	for i := range events {
		if !eventlog.Unverified(events[i].Actor) {
			events[i].Actor = "local/" + events[i].Actor
		}
	}
}

// Digest is that of the run when it has arrived: its WorkflowRun must adopt it.
func (p *Push) Digest(ctx context.Context) (digest string, err error) {
	here, err := p.From.Read(ctx, p.aggregate(), 0)
	if err != nil {
		return "", fmt.Errorf("reading run %s here: %w", p.Run, err)
	}
	for _, r := range here {
		events, err := r.Events()
		if err != nil {
			return "", fmt.Errorf("reading commit %s: %w", r.CommitID, err)
		}
		disown(events)
		for _, e := range events {
			digest = runner.Digest(digest, e)
		}
	}
	return digest, nil
}

// arrive says there that the run is on its way: it is nobody's to drive until it is received.
func (p *Push) arrive(ctx context.Context) (uint64, error) {
	ev, err := workflow.NewCatalog().Encode(workflow.HandedOver{To: p.ToName})
	if err != nil {
		return 0, err
	}
	ev.Time, ev.Actor, ev.Correlation = time.Now().UTC(), p.Actor, p.Run
	receipt, err := p.To.Append(ctx, eventlog.Commit{Aggregate: p.aggregate(), ID: p.arrival(), Events: []eventlog.Event{ev}})
	if err != nil {
		return 0, fmt.Errorf("announcing run %s there: %w", p.Run, err)
	}
	return receipt.Seq, nil
}

// over says that nothing more happens to a task here.
func over(p v1alpha1.TaskPhase) bool {
	switch p {
	case v1alpha1.TaskSucceeded, v1alpha1.TaskIgnored, v1alpha1.TaskSkipped, v1alpha1.TaskUndone, v1alpha1.TaskKept:
		return true
	default:
		return false
	}
}
