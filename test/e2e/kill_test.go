package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/rotation"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestKillMatrix kills scuted with SIGKILL at every write that a move makes: every append to the log, and every write
// to either API server, after it was done and before it is sent. Each process gets one write further than the one
// before it (with one call in flight at a time, so that there is an order), which makes every write the last of some
// process, and lets some process start from every state that a death can leave. Then the same with many calls in
// flight, where a death leaves several half done.
func TestKillMatrix(t *testing.T) {
	ctx := harness.Deadline(t, 20*time.Minute)
	for name, s := range map[string]struct {
		faults  scuted.Faults
		workers string
	}{
		"after-every-write":  {share(t, scuted.EveryWrite("move")), "1"},
		"before-every-write": {share(t, scuted.BeforeEveryWrite("move")), "1"},
		"many-in-flight":     {scuted.EveryWrite("move"), "16"},
		"bookkeeping":        {scuted.Faults{Class: "bookkeeping", Growing: true}, "16"},
	} {
		t.Run(name, func(t *testing.T) {
			ns := "killed-" + name
			shared.cluster(ctx, t, shared.blue, testbed.Tiny(ns, "tiny"))
			harness.Must(t, shared.blue.PutTarget(ctx, ns, shared.green))
			m := scuted.NewMove(ns, name, shared.green, "tiny")
			sweep(ctx, t, sweepOptions{from: shared.blue, to: shared.green, move: m, faults: s.faults, workers: s.workers, phase: mover.PhaseSucceeded})
		})
	}
}

// share is the part of a sweep that this run takes: with one call in flight at a time, each life gets so many writes further,
// and the first begins where the rotation is.
func share(t *testing.T, f scuted.Faults) scuted.Faults {
	t.Helper()
	s := rotation.Of(t, 8, "the writes of a sweep: "+f.String())
	f.First += s.First
	f.Step += s.Of - 1
	return f
}

type sweepOptions struct {
	from, to *scuted.Installation
	move     *v1alpha1.Move
	faults   scuted.Faults
	workers  string
	phase    v1alpha1.MovePhase
}

// sweep runs a move with a daemon that dies at the fault point of every one of its lives, until the move is over, and
// checks that nothing in the world noticed.
func sweep(ctx context.Context, t *testing.T, o sweepOptions) {
	t.Helper()
	w := shared.witness(ctx, t)
	paused := watchPauses(t, o.from, o.move.Namespace)
	before := objects(ctx, t, o.from, o.move.Namespace)
	journal := scuted.NewJournal(t.TempDir())
	t.Setenv("SCUTE_FAULT_JOURNAL", journal.Path())

	harness.Must(t, o.from.Create(ctx, o.move))
	started := time.Now()
	over, logDir, deaths := live(ctx, t, o)
	if over.Status.Phase != o.phase {
		t.Fatalf("phase %s: %s", over.Status.Phase, over.Status.Message)
	}
	inLog, err := o.faults.Commits(ctx, logDir, scuted.OfKind(eventlog.KindMove))
	harness.Must(t, err)
	r, err := journal.Read(o.faults)
	harness.Must(t, err)
	t.Logf("%s: killed %d times at %s in %s; %d writes were reached in all, %d of them appends", o.phase, deaths, o.faults,
		time.Since(started).Round(time.Second), r.Writes, r.Appends)
	if wrong := o.faults.PassedOver(deaths, r, inLog); wrong != "" {
		t.Error(wrong)
	}

	stands, empty := o.to, o.from
	if o.phase == mover.PhaseRolledBack {
		stands, empty = o.from, o.to
	} else {
		paused.none(t)
	}
	harness.Must(t, stands.Side.WaitAvailable(ctx, o.move.Namespace, "tiny"))
	if left := objects(ctx, t, empty, o.move.Namespace); len(left) > 0 {
		t.Errorf("left on %s: %v", empty.Side.Name(), names(left))
	}
	after := objects(ctx, t, stands, o.move.Namespace)
	if !slices.Equal(names(before), names(after)) {
		t.Errorf("objects before %v\nafter %v", names(before), names(after))
	}
	untouched(t, after)
	w.clean(ctx, t)
}

// live starts daemons, one after the other on one log, until the move is over.
func live(ctx context.Context, t *testing.T, o sweepOptions) (over *v1alpha1.Move, logDir string, deaths int) {
	t.Helper()
	from, m := o.from, o.move
	logDir, err := from.NewLogDir()
	harness.Must(t, err)
	for ; ; deaths++ {
		t.Setenv("SCUTE_FAULT", o.faults.Point(deaths))
		d := harness.Daemon(t, from, scuted.DaemonOptions{LogDir: logDir, Program: shared.programs.Faulty, Args: []string{"--move-workers", o.workers}})
		life, cancel := context.WithTimeout(ctx, time.Minute)
		ended := make(chan *v1alpha1.Move, 1)
		go func() {
			over, err := from.Wait(life, m.Namespace, m.Name, scuted.Over)
			if err == nil {
				ended <- over
			}
		}()
		select {
		case <-d.Done():
			cancel()
			if !d.Killed() {
				t.Fatalf("scuted ended by itself with status %d after %d deaths: see %s", d.ExitCode(), deaths, d.Log())
			}
		case over := <-ended:
			cancel()
			harness.Must(t, d.Stop(ctx))
			if d.Killed() { // it came to its fault point before it was asked to end
				deaths++
			}
			return over, logDir, deaths
		case <-life.Done():
			cancel()
			stuck(ctx, t, from, m, fmt.Sprintf("after %d deaths the daemon neither dies nor ends the move", deaths))
		}
	}
}

// stuck ends a test with what a move says of itself.
func stuck(ctx context.Context, t *testing.T, on *scuted.Installation, m *v1alpha1.Move, what string) {
	t.Helper()
	now, err := on.Wait(ctx, m.Namespace, m.Name, func(*v1alpha1.Move) bool { return true })
	t.Fatalf("%s: %s: %s: waiting for %v: %v", what, now.Status.Phase, now.Status.Message, now.Status.WaitingFor, err)
}
