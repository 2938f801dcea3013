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

// TestKillMatrix kills scuted with SIGKILL at every write of a move: at every append to the log, and at every write to
// an API server, after the write and before it. With one call at a time, each process makes one write more than the
// process before it, so that every write is the last one of some process, and every state after a kill is the first one
// of another. Then it repeats the sweep with many calls in flight, where a kill leaves several calls unfinished.
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

// share returns the share of a sweep that the rotation selects for this run. With one call at a time, each process
// makes that many writes more than the one before it, and the rotation selects the first write.
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

// sweep runs a move with a daemon that is killed at the fault point of each process until the move ends, and checks
// that the cluster and the witness were not affected.
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
	t.Logf("%s: killed %d times at %s in %s; %d writes were reached, %d of them appends", o.phase, deaths, o.faults,
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
		t.Errorf("objects remain on %s: %v", empty.Side.Name(), names(left))
	}
	after := objects(ctx, t, stands, o.move.Namespace)
	if !slices.Equal(names(before), names(after)) {
		t.Errorf("objects changed: before %v\nafter %v", names(before), names(after))
	}
	untouched(t, after)
	w.clean(ctx, t)
}

// live starts one daemon after the other on one log until the move ends.
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
				t.Fatalf("scuted exited with status %d after %d kills, without a signal: see %s", d.ExitCode(), deaths, d.Log())
			}
		case over := <-ended:
			cancel()
			harness.Must(t, d.Stop(ctx))
			if d.Killed() { // it reached its fault point before the request to stop
				deaths++
			}
			return over, logDir, deaths
		case <-life.Done():
			cancel()
			stuck(ctx, t, from, m, fmt.Sprintf("after %d deaths the daemon neither dies nor ends the move", deaths))
		}
	}
}

// stuck fails the test with the status of a move.
func stuck(ctx context.Context, t *testing.T, on *scuted.Installation, m *v1alpha1.Move, what string) {
	t.Helper()
	now, err := on.Wait(ctx, m.Namespace, m.Name, func(*v1alpha1.Move) bool { return true })
	t.Fatalf("%s: phase %s: %s: waiting for %v: %v", what, now.Status.Phase, now.Status.Message, now.Status.WaitingFor, err)
}
