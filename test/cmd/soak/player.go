package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"scute.dev/test/soak"
)

// player performs the faults of a schedule and keeps account of them.
type player struct {
	*stage
	report *report
	// fail ends the faults; the first violation calls it.
	fail context.CancelFunc

	mu     sync.Mutex
	world  soak.World
	books  map[string]*soak.Book
	counts map[soak.Kind]*tally
	on     int // faults
	begun  int
	moves  map[string]int // ended, by phase
	runs   []promise
	orders []order // which are still to be taken back
	// removed and made are machines, by why they were removed.
	removed map[string]int
	made    int
	looks   map[string]int // at each invariant
}

// tally of one kind of fault.
type tally struct{ begun, withheld, failed int }

func newPlayer(s *stage, r *report, fail context.CancelFunc) *player {
	p := &player{
		stage: s, report: r, fail: fail, books: map[string]*soak.Book{}, counts: map[soak.Kind]*tally{},
		moves: map[string]int{}, removed: map[string]int{}, looks: map[string]int{},
	}
	for _, k := range soak.Kinds() {
		p.counts[k] = &tally{}
	}
	return p
}

// violated prints a violation and ends the faults.
func (p *player) violated(err error) {
	p.report.violated(err)
	p.fail()
}

// held counts a look at an invariant, and tells when it does not hold.
func (p *player) held(invariant string, err error) {
	p.mu.Lock()
	p.looks[invariant]++
	p.mu.Unlock()
	if err != nil {
		p.violated(err)
	}
}

// errWithheld says that a fault is not begun, for it would cost more than it may, or there is nothing that it could be
// done to.
var errWithheld = errors.New("withheld")

func withheld(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errWithheld}, args...)...)
}

// undo takes a fault back. It is tried again until it succeeds.
type undo func(context.Context) error

// faultFunc begins a fault and says what it was done to. undo is nil where there is nothing to take back.
type faultFunc func(context.Context, soak.Fault) (u undo, what string, err error)

func (p *player) faults() map[soak.Kind]faultFunc {
	return map[soak.Kind]faultFunc{
		soak.NodeNotReady:       p.nodeNotReady,
		soak.NodeSilent:         p.nodeSilent,
		soak.WorkerNotReady:     p.workerNotReady,
		soak.PowerOff:           p.powerOff,
		soak.EtcdSilent:         p.etcdSilent,
		soak.EtcdMemberRemoved:  p.etcdMemberRemoved,
		soak.EtcdPodNotReady:    p.etcdPodNotReady,
		soak.LeaderMoved:        p.leaderMoved,
		soak.MajorityOff:        p.majorityOff,
		soak.MachineDeleted:     p.machineDeleted,
		soak.WorkerDeleted:      p.workerDeleted,
		soak.Scaled:             p.scaled,
		soak.RolledOut:          p.rolledOut,
		soak.Paused:             p.paused,
		soak.Held:               p.heldRemediation,
		soak.Aborted:            p.abortedRemediation,
		soak.Moved:              p.moved,
		soak.MoveAborted:        p.moveAborted,
		soak.RunStarted:         p.runStarted,
		soak.ScutedKilled:       p.scutedKilled,
		soak.ScutedStopped:      p.scutedStopped,
		soak.APIServerKilled:    p.apiServerKilled,
		soak.EtcdKilled:         p.etcdKilled,
		soak.ControllersStopped: p.controllersStopped,
	}
}

// beginTime bounds the beginning of a fault; where a server is away, it fails.
const beginTime = 30 * time.Second

// play performs all faults at their times and returns when all are undone. The end of chaos ends them early; that of ctx
// leaves them as they are, for all is about to be stopped.
func (p *player) play(ctx, chaos context.Context, faults []soak.Fault) {
	started := time.Now()
	begin := p.faults()
	var wait sync.WaitGroup
	for _, f := range faults {
		select {
		case <-chaos.Done():
		case <-time.After(time.Until(started.Add(f.At))):
			wait.Go(func() { p.perform(ctx, chaos, f, begin[f.Kind]) })
			continue
		}
		break
	}
	wait.Wait()
}

// perform begins a fault, lets it last, and undoes it.
func (p *player) perform(ctx, chaos context.Context, f soak.Fault, begin faultFunc) {
	bounded, cancel := context.WithTimeout(chaos, beginTime+f.For)
	u, what, err := begin(bounded, f)
	cancel()
	begun := time.Now()
	p.mu.Lock()
	t := p.counts[f.Kind]
	switch {
	case errors.Is(err, errWithheld):
		t.withheld++
	case err != nil:
		t.failed++
	default:
		t.begun++
		p.begun++
	}
	p.mu.Unlock()
	if err != nil {
		p.report.say("not done", "%s: %v", f, err)
		if u == nil {
			return
		}
	} else {
		p.report.say("fault", "%s: %s", f, what)
	}
	if u == nil {
		return
	}
	p.count(&p.on, 1)
	defer p.count(&p.on, -1)
	select {
	case <-chaos.Done():
	case <-time.After(time.Until(begun.Add(f.For))):
	}
	for over := time.Now(); ctx.Err() == nil; {
		tried, cancel := context.WithTimeout(ctx, beginTime)
		err := u(tried)
		cancel()
		if err == nil {
			p.report.say("undone", "#%d %s on %s: %s", f.Number, f.Kind, f.Where, what)
			return
		}
		p.report.note("undo", "#%d %s on %s: %v", f.Number, f.Kind, f.Where, err)
		if time.Since(over) > settleTime {
			p.violated(fmt.Errorf("undo: %s: not after %s: %w", f, settleTime, err))
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (p *player) count(n *int, by int) {
	p.mu.Lock()
	*n += by
	p.mu.Unlock()
}
