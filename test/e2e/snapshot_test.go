package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestKilledBetweenSnapshots kills scuted with SIGKILL several times while it takes snapshots of its view, mostly
// between two snapshots. Each process starts from a snapshot and the commits after it. The move succeeds, and the last
// snapshot equals a replay of the log.
func TestKilledBetweenSnapshots(t *testing.T) {
	ctx := harness.Deadline(t, 10*time.Minute)
	const ns = "snapshots"
	shared.cluster(ctx, t, shared.blue, testbed.Tiny(ns, "tiny"))
	harness.Must(t, shared.blue.PutTarget(ctx, ns, shared.green))
	m := scuted.NewMove(ns, "away", shared.green, "tiny")
	harness.Must(t, shared.blue.Create(ctx, m))
	logDir, err := shared.blue.NewLogDir()
	harness.Must(t, err)

	var restored int // processes that started from a snapshot
	faults := scuted.Faults{Class: "move", First: 25, Step: 7}
	for life := 0; ; life++ {
		t.Setenv("SCUTE_FAULT", faults.Point(life))
		d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: logDir, Program: shared.programs.Faulty, Args: []string{"--snapshot-every", "3"}})
		over := lifeOf(ctx, t, d, m)
		text, err := os.ReadFile(d.Log())
		harness.Must(t, err)
		restored = strings.Count(string(text), "view restored from a snapshot")
		if over == nil {
			continue
		}
		if over.Status.Phase != mover.PhaseSucceeded {
			t.Fatalf("phase = %s, want Succeeded: %s", over.Status.Phase, over.Status.Message)
		}
		harness.Must(t, d.Stop(ctx))
		t.Logf("%d processes, %d of them started from a snapshot", life+1, restored)
		break
	}
	if restored == 0 {
		t.Error("no process started from a snapshot")
	}
	harness.Must(t, shared.green.Side.WaitAvailable(ctx, ns, "tiny"))
	if _, err := os.Stat(filepath.Join(logDir, "snapshots", "daemon")); err != nil {
		t.Error(err)
	}
	out, err := exec.CommandContext(ctx, shared.programs.Ctl, "log", "replay", "--verify", "--log", logDir).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// lifeOf waits until the move ends, and returns it, or until the daemon was killed, and returns nil.
func lifeOf(ctx context.Context, t *testing.T, d *scuted.Daemon, m *v1alpha1.Move) *v1alpha1.Move {
	t.Helper()
	life, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ended := make(chan *v1alpha1.Move, 1)
	go func() {
		if over, err := shared.blue.Wait(life, m.Namespace, m.Name, scuted.Over); err == nil {
			ended <- over
		}
	}()
	select {
	case <-d.Done():
		if !d.Killed() {
			t.Fatalf("scuted exited with status %d, without a signal: see %s", d.ExitCode(), d.Log())
		}
		return nil
	case over := <-ended:
		return over
	case <-life.Done():
		t.Fatalf("the daemon was not killed and did not finish the move: see %s", d.Log())
		return nil
	}
}
