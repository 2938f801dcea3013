package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"scute.dev/test/soak"
)

// player performs the faults of a schedule and records them.
type player struct {
	*stage
	report *report
	// fail ends the faults. The first violation calls it.
	fail context.CancelFunc

	mu     sync.Mutex
	world  soak.World
	books  map[string]*soak.Book
	counts map[soak.Kind]*tally
	on     int // active faults
	begun  int
	moves  map[string]int // ended moves, by phase
	runs   []promise
	orders []order // orders that are still to be reverted
	// removed counts deleted machines by reason, made created ones.
	removed map[string]int
	made    int
	looks   map[string]int // number of checks of each invariant
}

// tally counts the faults of one kind.
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

// held counts a check of an invariant, and reports a violation.
func (p *player) held(invariant string, err error) {
	p.mu.Lock()
	p.looks[invariant]++
	p.mu.Unlock()
	if err != nil {
		p.violated(err)
	}
}

// errWithheld means that a fault does not begin, because it would exceed the budget or has no target.
var errWithheld = errors.New("withheld")

func withheld(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errWithheld}, args...)...)
}

// undo reverts a fault. It is retried until it succeeds.
type undo func(context.Context) error

// faultFunc begins a fault and describes its target. undo is nil if there is nothing to revert.
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

// beginTime bounds the beginning of a fault. It fails if a server is down.
const beginTime = 30 * time.Second

// play performs all faults at their times and returns when all are reverted. The end of chaos ends them early. The end
// of ctx leaves them as they are, because everything is about to be stopped.
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

// perform begins a fault, waits for its duration, and reverts it.
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
