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
	"scute.dev/internal/fair"
	"scute.dev/internal/supervise"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

// checkInterval is how often a waiting run checks the log for commits of other processes.
const checkInterval = time.Second

// Drive drives a run until it ends, waits for an operator, or ctx ends. It returns
// aggregate.ErrClaimLost when another process claims the run. When it returns, all effects that it
// started have ended.
func (r *Runner) Drive(ctx context.Context, id string) error {
	a, err := r.load(ctx, id, "daemon/"+r.Incarnation)
	if err != nil {
		return err
	}
	news, stop := r.Subscribe(id)
	defer stop()
	due := func() bool { return workflow.Due(a.State, r.now()) && !workflow.IsStrandedFor(a.State, r.Incarnation) }
	if !due() {
		return nil
	}
	if err := r.awaitAdoption(ctx, id, a, news); err != nil || !due() {
		return err
	}
	d := &drive{
		runner: r, a: a, id: id, updates: news, clock: newClock(r.now), slot: r.Slots.Slot(a.State.Namespace),
		reports: make(chan report, r.parallel()), inFlight: make(map[workflow.EffectID]*flight), idle: make(chan struct{}, 1), slotRequests: make(chan slotRequest),
	}
	a.Now = d.clock.now
	defer func() {
		d.slot.Release()
		r.Throttle(id, supervise.Throttled{})
	}()
	defer d.drain()
	return d.run(ctx)
}

// drive is a run that is being driven. Only the goroutine of Drive accesses its fields.
type drive struct {
	runner *Runner
	a      *run
	id     string
	clock  *clock
	kinds  task.Kinds
	// slot is held while an effect works. Without it, no effect starts, but effects that wait
	// continue.
	slot *fair.Slot
	// adoptionThrottle is the reason why no effect starts until the WorkflowRun adopts what clients
	// wrote.
	adoptionThrottle supervise.Throttled
	// granted is closed when the requested slot is granted; nil if none is requested.
	granted <-chan struct{}

	// idle receives a value when an attempt has begun to only wait.
	idle chan struct{}
	// slotRequests receives requests of attempts that finished waiting and need a slot again.
	slotRequests chan slotRequest
	// updates receives the sequence of the newest commit.
	updates <-chan uint64

	reports  chan report
	inFlight map[workflow.EffectID]*flight
	unstored []report
	decided  time.Time
}

// errEnded is returned to an attempt that tries to record something after it has ended.
var errEnded = errors.New("the attempt has ended: nothing more is recorded")

// report is the outcome of an effect, or an intermediate result.
type report struct {
	id    workflow.EffectID
	in    workflow.Input
	ended bool
	// stored receives the result of storing the report. It may be nil.
	stored chan<- error
	// ignored means that no event followed from the report.
	ignored bool
}

func (d *drive) run(ctx context.Context) error {
	if err := d.claim(ctx); err != nil {
		return err
	}
	if _, err := d.updateSlot(); err != nil {
		return err
	}
	for {
		if err := d.record(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return cmp.Or(d.shutdown(ctx), err)
		}
		var err error
		if d.adoptionThrottle, err = d.runner.adoptionThrottle(ctx, d.id, d.a); err != nil {
			return err
		}
		d.start(ctx)
		if len(d.inFlight) == 0 && d.isIdle() {
			return nil
		}
		if granted, err := d.updateSlot(); err != nil {
			return err
		} else if granted {
			continue
		}
		if err := d.wait(ctx); err != nil {
			if ctx.Err() != nil {
				return cmp.Or(d.shutdown(ctx), err)
			}
			return err
		}
	}
}

// claim claims the run. If this process lacks a kind that the run needs, it also records that the
// run is stranded.
func (d *drive) claim(ctx context.Context) error {
	return d.store(ctx, d.a.State.ClaimedBy(), func() error {
		now := d.a.Time()
		if err := d.a.Record(now, workflow.Claimed{Holder: d.runner.Incarnation}); err != nil {
			return err
		}
		kinds, err := d.runner.Kinds(ctx, d.a.State.Header)
		if err == nil {
			err = missingKinds(d.a.State.Definition(), kinds)
		}
		if d.kinds = kinds; err != nil {
			return d.a.Record(now, workflow.Stranded{Reason: err.Error()})
		}
		return nil
	})
}

// store calls decide, and stores the events that decide has recorded. After a conflict it reads the
// run again, and repeats this if the holder is still the same.
func (d *drive) store(ctx context.Context, holder string, decide func() error) error {
	for {
		err := decide()
		if err == nil {
			err = retry(ctx, func() error { return d.a.Store(ctx) })
		}
		if !errors.Is(err, eventlog.ErrConflict) {
			return err
		}
		if err := retry(ctx, func() error { return d.a.reload(ctx) }); err != nil {
			return err
		}
		if err := d.a.CheckClaim(holder); err != nil {
			return err
		}
	}
}

func missingKinds(def *workflow.Definition, kinds task.Kinds) error {
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
		return fmt.Errorf("this process does not support the kinds %s", strings.Join(names, ", "))
	}
	return nil
}

func undoKind(step *workflow.Step) string {
	if step.Undo == nil {
		return ""
	}
	return step.Undo.Kind
}

// record decides what follows and stores the events. It finishes storing even if ctx has ended.
func (d *drive) record(ctx context.Context) error {
	ctx, cancel := withGrace(ctx, shutdownTimeout)
	defer cancel()
	err := d.store(ctx, d.runner.Incarnation, d.decide)
	d.notifyStored(err)
	return err
}

func (d *drive) decide() error {
	for i := range d.unstored {
		said, err := d.a.decide(d.unstored[i].in)
		if err != nil {
			return err
		}
		d.unstored[i].ignored = !said
	}
	d.decided = d.clock.now()
	return d.a.settle(d.tick())
}

func (d *drive) notifyStored(err error) {
	for _, r := range d.unstored {
		switch {
		case r.stored == nil:
		case err == nil && r.ignored:
			r.stored <- errEnded
		default:
			r.stored <- err
		}
	}
	d.unstored = nil
}

// isIdle reports whether nothing more happens without an operator.
func (d *drive) isIdle() bool {
	return !workflow.Due(d.a.State, d.clock.now()) || d.a.State.Stranded != ""
}

// wait waits for a report, a commit of another process or the next due time, then collects reports.
func (d *drive) wait(ctx context.Context) error {
	wake := checkInterval
	// An effect that was already due at the last tick waits for a free slot, and therefore for the end
	// of another effect.
	if at := workflow.NextAt(d.a.State); at.After(d.decided) {
		wake = min(wake, max(at.Sub(d.clock.now()), 0))
	}
	look, err := d.sleep(ctx, d.runner.Timer(wake))
	if err != nil {
		return err
	}
	if look {
		if err := retry(ctx, func() error { return d.a.Refresh(ctx, d.runner.Incarnation) }); err != nil {
			return err
		}
	}
	for { // put all reports that have arrived into one commit
		select {
		case r := <-d.reports:
			d.addReport(r)
		default:
			return nil
		}
	}
}

// sleep waits until a report, a request or a commit arrives, or over fires. look means that the log
// may have new commits.
func (d *drive) sleep(ctx context.Context, over <-chan time.Time) (look bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-d.granted:
			return false, nil
		case <-d.idle:
			return false, nil
		case w := <-d.slotRequests:
			w.flight.slotRequests = append(w.flight.slotRequests, w)
			return false, nil
		case r := <-d.reports:
			d.addReport(r)
			return false, nil
		case <-over:
			return true, nil
		case seq := <-d.updates:
			if seq > d.a.Seq { // a lower sequence is a commit of this driver
				return true, nil
			}
		}
	}
}

func (d *drive) addReport(r report) {
	if f := d.inFlight[r.id]; r.ended && f != nil {
		f.cancel()
		delete(d.inFlight, r.id)
	}
	d.unstored = append(d.unstored, r)
}

// start starts the effects that are in flight according to the log, each after the previous attempt
// at it has ended. It cancels all other effects.
func (d *drive) start(ctx context.Context) {
	wanted := make(map[workflow.EffectID]bool, len(d.inFlight))
	var begin []workflow.Effect
	held := d.slot.Held()
	for _, e := range workflow.Effects(d.a.State) {
		wanted[e.EffectID] = true
		if d.inFlight[e.EffectID] == nil && !d.isBusy(e.EffectID) && d.adoptionThrottle == (supervise.Throttled{}) && (held || e.Kind == workflow.EffectVerify) {
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

// isBusy reports whether another attempt or undo of the same task is still running. Only failure
// handlers run concurrently with attempts and undos, and with each other.
func (d *drive) isBusy(id workflow.EffectID) bool {
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

func (d *drive) drain() {
	for _, f := range d.inFlight {
		f.cancel()
	}
	for len(d.inFlight) > 0 {
		r := <-d.reports
		if r.stored != nil {
			r.stored <- aggregate.ErrClaimLost
		}
		if r.ended {
			delete(d.inFlight, r.id)
		}
	}
	d.notifyStored(aggregate.ErrClaimLost)
}

// clock is the time of a driven run. It follows a clock that is set forward. It never goes back,
// because stored delays and timeouts would then end too late. Only the goroutine of Drive accesses
// its fields.
type clock struct {
	wall  func() time.Time
	start time.Time // with a monotonic reading
	base  time.Time // the wall clock at start, corrected whenever the clock is set forward
}

func newClock(wall func() time.Time) *clock {
	return &clock{wall: wall, start: time.Now(), base: wall().Round(0)}
}

func (c *clock) now() time.Time {
	passed := time.Since(c.start)
	if wall := c.wall().Round(0); wall.After(c.base.Add(passed)) {
		c.base = wall.Add(-passed)
	}
	return c.base.Add(passed)
}
