package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestKillMatrix kills scuted with SIGKILL at every write that a move makes: every append to the log, and every write
// to either API server, after it was done and before it is sent. Each process gets one write further than the one
// before it (with one call in flight at a time, so that there is an order), which makes every write the last of some
// process, and lets some process start from every state that a death can leave. Then the same with many calls in
// flight, where a death leaves several half done.
func TestKillMatrix(t *testing.T) {
	ctx := deadline(t, 20*time.Minute)
	const ns = "killed"
	shared.cluster(ctx, t, shared.blue, testbed.Tiny(ns, "tiny"))
	must(t, shared.blue.PutTarget(ctx, ns, shared.green))
	sweeps := []struct {
		name, fault, workers string
		atLeast              int // deaths; fewer would mean that fault points were passed over
	}{
		{"after-every-write", "after:1:move", "1", 120},
		{"before-every-write", "before:2:move", "1", 120},
		{"many-in-flight", "after:1:move", "16", 40},
		{"bookkeeping", "after:+:bookkeeping", "16", 5},
	}
	from, to := shared.blue, shared.green
	for _, s := range sweeps {
		t.Run(s.name, func(t *testing.T) {
			must(t, from.PutTarget(ctx, ns, to))
			m := scuted.NewMove(ns, s.name, to, "tiny")
			sweep(ctx, t, sweepOptions{from: from, to: to, move: m, fault: s.fault, workers: s.workers, atLeast: s.atLeast, phase: mover.PhaseSucceeded})
		})
		from, to = to, from
	}
}

type sweepOptions struct {
	from, to       *scuted.Installation
	move           *v1alpha1.Move
	fault, workers string
	atLeast        int
	phase          v1alpha1.MovePhase
}

// sweep runs a move with a daemon that dies at the fault point of every one of its lives, until the move is over, and
// checks that nothing in the world noticed.
func sweep(ctx context.Context, t *testing.T, o sweepOptions) {
	t.Helper()
	w := shared.witness(ctx, t)
	paused := watchPauses(t, o.from, o.move.Namespace)
	before := objects(ctx, t, o.from, o.move.Namespace)
	journal := filepath.Join(t.TempDir(), "writes")
	t.Setenv("SCUTE_FAULT_JOURNAL", journal)

	must(t, o.from.Create(ctx, o.move))
	started := time.Now()
	over, deaths := live(ctx, t, o)
	if over.Status.Phase != o.phase {
		t.Fatalf("phase %s: %s", over.Status.Phase, over.Status.Message)
	}
	points := count(t, journal)
	t.Logf("%s: killed %d times at %s in %s; %d writes were reached in all, %d of them appends", o.phase, deaths, o.fault,
		time.Since(started).Round(time.Second), points.total, points.appends)
	if deaths < o.atLeast {
		t.Errorf("only %d deaths, fewer than %d: fault points were passed over", deaths, o.atLeast)
	}

	stands, empty := o.to, o.from
	if o.phase == mover.PhaseRolledBack {
		stands, empty = o.from, o.to
	} else {
		paused.none(t)
	}
	must(t, stands.Side.WaitAvailable(ctx, o.move.Namespace, "tiny"))
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

// live starts daemons, one after the other, until the move is over.
func live(ctx context.Context, t *testing.T, o sweepOptions) (*v1alpha1.Move, int) {
	t.Helper()
	from, m := o.from, o.move
	logDir, err := from.NewLogDir()
	must(t, err)
	for deaths := 0; ; deaths++ {
		// A daemon that always dies at its first claims and statuses makes no headway: each life gets one further (+).
		t.Setenv("SCUTE_FAULT", strings.Replace(o.fault, "+", strconv.Itoa(deaths+1), 1))
		d, err := from.Start(scuted.DaemonOptions{LogDir: logDir, Program: shared.programs.Faulty, Args: []string{"--move-workers", o.workers}})
		must(t, err)
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
			if code := d.ExitCode(); code != -1 { // -1: by a signal
				t.Fatalf("scuted ended by itself with status %d after %d deaths: see %s", code, deaths, d.Log())
			}
		case over := <-ended:
			cancel()
			must(t, d.Stop(ctx))
			return over, deaths
		case <-life.Done():
			cancel()
			last, err := from.Wait(life, m.Namespace, m.Name, scuted.Over)
			t.Fatalf("after %d deaths the daemon neither dies nor ends the move: %v %v", deaths, last.Status.Message, err)
		}
	}
}

type reached struct{ total, appends int }

// count reads the fault points' journal: a line for each write that was reached.
func count(t *testing.T, journal string) reached {
	t.Helper()
	f, err := os.Open(journal)
	must(t, err)
	defer f.Close()
	var r reached
	for s := bufio.NewScanner(f); s.Scan(); {
		r.total++
		if strings.HasPrefix(s.Text(), "APPEND ") {
			r.appends++
		}
	}
	if r.total == 0 {
		t.Fatal(fmt.Errorf("no write was counted"))
	}
	return r
}
