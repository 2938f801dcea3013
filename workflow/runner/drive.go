package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/internal/supervise"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

// lookEvery is how often a run that waits looks for what others appended.
const lookEvery = time.Second

// Drive takes a run as far as it goes: to its end, to where it waits for an operator, or until ctx ends. Another process's
// claim ends it with aggregate.ErrLost. Whatever Drive leaves undone, the next Drive does. When it returns, nothing that it started
// runs any more.
func (r *Runner) Drive(ctx context.Context, id string) error {
	a, err := r.load(ctx, id, "daemon/"+r.Incarnation)
	if err != nil {
		return err
	}
	news, stop := r.Listen(id)
	defer stop()
	due := func() bool { return workflow.Due(a.State, r.now()) && !workflow.StrandedHere(a.State, r.Incarnation) }
	if !due() {
		return nil
	}
	if err := r.awaitAdoption(ctx, id, a, news); err != nil || !due() {
		return err
	}
	d := &drive{
		runner: r, a: a, id: id, news: news, clock: newClock(r.now), place: r.Places.Place(a.State.Namespace),
		reports: make(chan report, r.parallel()), inFlight: make(map[workflow.EffectID]*flight), rested: make(chan struct{}, 1), wishes: make(chan wish),
	}
	a.Now = d.clock.now
	defer func() {
		d.place.Give()
		r.Throttle(id, supervise.Throttled{})
	}()
	defer d.land()
	return d.run(ctx)
}

// drive is one run while it is driven. All its fields belong to the goroutine of Drive.
type drive struct {
	runner *Runner
	a      *run
	id     string
	clock  *clock
	kinds  task.Kinds
	// place is held while something works. Without it nothing is started; what only waits continues.
	place *supervise.Place
	// unadopted is why nothing is started before the WorkflowRun adopts what clients brought into the run.
	unadopted supervise.Throttled
	// granted is closed when the place is held that was asked for; nil when none is waited for.
	granted <-chan struct{}

	// rested is told when an attempt begins to do nothing but wait.
	rested chan struct{}
	// wishes are of attempts that have waited and have more to do.
	wishes chan wish
	// news has the sequence of the newest commit.
	news <-chan uint64

	reports  chan report
	inFlight map[workflow.EffectID]*flight
	// unstored are reports that were decided on but are not stored yet.
	unstored []report
	// decided is when what follows by itself was decided last.
	decided time.Time
}

// errOver says that what an attempt wants recorded comes too late.
var errOver = errors.New("the attempt is over: nothing more of it is recorded")

// report is what an effect says: an outcome that ends it, or something on the way.
type report struct {
	id   workflow.EffectID
	in   workflow.Input
	over bool
	// stored is told when the log has it.
	stored chan<- error
	// late: nothing followed from it.
	late bool
}

func (d *drive) run(ctx context.Context) error {
	if err := d.claim(ctx); err != nil {
		return err
	}
	if _, err := d.share(); err != nil {
		return err
	}
	for {
		if err := d.record(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return cmp.Or(d.leave(ctx), err)
		}
		var err error
		if d.unadopted, err = d.runner.unadopted(ctx, d.id, d.a); err != nil {
			return err
		}
		d.start(ctx)
		if len(d.inFlight) == 0 && d.rests() {
			return nil
		}
		if granted, err := d.share(); err != nil {
			return err
		} else if granted {
			continue
		}
		if err := d.wait(ctx); err != nil {
			if ctx.Err() != nil {
				return cmp.Or(d.leave(ctx), err)
			}
			return err
		}
	}
}

// claim takes the run over. An operator's word in between is taken note of; another process's claim is not contested.
func (d *drive) claim(ctx context.Context) error {
	for {
		before := d.a.State.ClaimedBy()
		err := d.tryClaim(ctx)
		if !errors.Is(err, eventlog.ErrConflict) {
			return err
		}
		if err := retried(ctx, func() error { return d.a.reload(ctx) }); err != nil {
			return err
		}
		if err := d.a.Held(before); err != nil {
			return err
		}
	}
}

// tryClaim finds out as well whether this process knows what the run needs.
func (d *drive) tryClaim(ctx context.Context) error {
	now := d.a.Time()
	if err := d.a.Record(now, workflow.Claimed{Holder: d.runner.Incarnation}); err != nil {
		return err
	}
	kinds, err := d.runner.Kinds(ctx, d.a.State.Header)
	if err == nil {
		err = missing(d.a.State.Definition(), kinds)
	}
	if err != nil {
		if err := d.a.Record(now, workflow.Stranded{Reason: err.Error()}); err != nil {
			return err
		}
	}
	d.kinds = kinds
	return retried(ctx, func() error { return d.a.Store(ctx) })
}

// missing names the kinds that a definition uses and this process does not know.
func missing(def *workflow.Definition, kinds task.Kinds) error {
	var names []string
	look := func(step *workflow.Step) {
		for _, kind := range []string{step.Kind, undoKind(step)} {
			if kind != "" && kinds[kind] == nil && !slices.Contains(names, kind) {
				names = append(names, kind)
			}
		}
	}
	for i := range def.Tasks {
		for n := range def.Tasks[i].Steps {
			look(&def.Tasks[i].Steps[n])
		}
	}
	for i := range def.OnFailure {
		look(&def.OnFailure[i])
	}
	if len(names) > 0 {
		return fmt.Errorf("this process does not have the kinds %s", strings.Join(names, ", "))
	}
	return nil
}

func undoKind(step *workflow.Step) string {
	if step.Undo == nil {
		return ""
	}
	return step.Undo.Kind
}

// record decides on what was reported and on the time, and stores it. When somebody else wrote first, the run is read
// again and everything is decided again. What is being stored when the process is asked to end is stored.
func (d *drive) record(ctx context.Context) error {
	ctx, cancel := outlast(ctx, shutdownTimeout)
	defer cancel()
	for {
		err := d.decide()
		if err == nil {
			err = retried(ctx, func() error { return d.a.Store(ctx) })
		}
		if !errors.Is(err, eventlog.ErrConflict) {
			d.tell(err)
			return err
		}
		if err := retried(ctx, func() error { return d.a.reload(ctx) }); err != nil {
			d.tell(err)
			return err
		}
		if err := d.a.Held(d.runner.Incarnation); err != nil {
			d.tell(err)
			return err
		}
	}
}

func (d *drive) decide() error {
	for i := range d.unstored {
		said, err := d.a.decide(d.unstored[i].in)
		if err != nil {
			return err
		}
		d.unstored[i].late = !said
	}
	d.decided = d.clock.now()
	return d.a.settle(d.tick())
}

// tell lets the effects continue that wait for what they said to be durable.
func (d *drive) tell(err error) {
	for _, r := range d.unstored {
		switch {
		case r.stored == nil:
		case err == nil && r.late:
			r.stored <- errOver
		default:
			r.stored <- err
		}
	}
	d.unstored = nil
}

// rests says that nothing happens any more without an operator.
func (d *drive) rests() bool {
	return !workflow.Due(d.a.State, d.clock.now()) || d.a.State.Stranded != ""
}

// wait gathers at least one report, or what others appended, or lets the time come at which something is due.
func (d *drive) wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	wake := lookEvery
	// What was due already when all was decided waits for a free place: an effect's end brings it on, not the time.
	if at := workflow.NextAt(d.a.State); at.After(d.decided) {
		wake = min(wake, max(at.Sub(d.clock.now()), 0))
	}
	look, err := d.sleep(ctx, d.runner.Alarm(wake))
	if err != nil {
		return err
	}
	if look {
		if err := retried(ctx, func() error { return d.a.Refresh(ctx, d.runner.Incarnation) }); err != nil {
			return err
		}
	}
	for { // all else that has come in belongs to the same commit
		select {
		case r := <-d.reports:
			d.take(r)
		default:
			return nil
		}
	}
}

// sleep waits until something happens, or the time is over. look says that the log may hold more than is known here.
func (d *drive) sleep(ctx context.Context, over <-chan time.Time) (look bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-d.granted:
			return false, nil
		case <-d.rested:
			return false, nil
		case w := <-d.wishes:
			w.flight.wishes = append(w.flight.wishes, w)
			return false, nil
		case r := <-d.reports:
			d.take(r)
			return false, nil
		case <-over:
			return true, nil
		case seq := <-d.news:
			if seq > d.a.Seq { // else it is a commit of this driver
				return true, nil
			}
		}
	}
}

func (d *drive) take(r report) {
	if f := d.inFlight[r.id]; r.over && f != nil {
		f.cancel()
		delete(d.inFlight, r.id)
	}
	d.unstored = append(d.unstored, r)
}

// start performs the effects that the log has as being in flight, and cancels those that it has not any more. An attempt
// waits until the one before it has ended.
func (d *drive) start(ctx context.Context) {
	wanted := make(map[workflow.EffectID]bool, len(d.inFlight))
	var begin []workflow.Effect
	held := d.place.Held()
	for _, e := range workflow.Effects(d.a.State) {
		wanted[e.EffectID] = true
		if d.inFlight[e.EffectID] == nil && !d.busy(e.EffectID) && d.unadopted == (supervise.Throttled{}) && (held || e.Kind == workflow.EffectVerify) {
			begin = append(begin, e)
		}
	}
	for id, f := range d.inFlight {
		if !wanted[id] {
			f.cancel()
		}
	}
	for _, e := range begin {
		d.begin(ctx, e)
	}
}

// busy says that something else that works on the same task has not ended yet: an earlier attempt, or what was cancelled because the
// run has been resumed in the middle of it. Only the handlers of its failures run beside it, and beside each other.
func (d *drive) busy(id workflow.EffectID) bool {
	works := func(kind workflow.EffectKind) bool { return kind == workflow.EffectAct || kind == workflow.EffectUndo }
	if !works(id.Kind) {
		return false
	}
	for other := range d.inFlight {
		if other.Task == id.Task && works(other.Kind) {
			return true
		}
	}
	return false
}

// land cancels what is in flight and waits until all of it has ended.
func (d *drive) land() {
	for _, f := range d.inFlight {
		f.cancel()
	}
	for len(d.inFlight) > 0 {
		r := <-d.reports
		if r.stored != nil {
			r.stored <- aggregate.ErrLost
		}
		if r.over {
			delete(d.inFlight, r.id)
		}
	}
	d.tell(aggregate.ErrLost)
}
