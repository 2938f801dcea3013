package crash

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/comparison"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// rests is how long a cluster may take to settle after its Move, also on a slow machine.
const rests = 5 * time.Minute

// playScute holds every move in one daemon at its moment, kills the daemon, and starts the next one.
func playScute(ctx context.Context, t *testing.T, cases map[string]moment, of map[string]*crashed) map[string]comparison.Ending {
	t.Helper()
	host := func(on *scuted.Installation) string { return strings.TrimPrefix(on.Side.Config().Host, "https://") }
	var holds string
	for name, m := range cases {
		holds += of[name].namespace + " " + m.scute(host(shared.blue), host(shared.green)) + "\n"
		harness.Must(t, shared.blue.Create(ctx, scuted.NewMove(of[name].namespace, "go", shared.green, clusterName)))
	}
	journal := scuted.NewJournal(t.TempDir())
	t.Setenv("SCUTE_FAULT_HOLD", holds)
	t.Setenv("SCUTE_FAULT_JOURNAL", journal.Path())
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	first := harness.Daemon(t, shared.blue, scuted.DaemonOptions{
		LogDir: dir, Program: shared.programs.Faulty, Args: []string{"--move-concurrency", fmt.Sprint(len(cases))},
	})
	harness.Await(ctx, t, "every move is where it dies", func() string {
		harness.Must(t, first.Exited())
		text, err := os.ReadFile(journal.Path())
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for name := range cases {
			if !strings.Contains(string(text), "held "+of[name].namespace+" ") {
				return name + " is not: " + said(ctx, t, of[name])
			}
		}
		return ""
	})
	harness.Must(t, first.Kill(ctx))
	endings := make(map[string]comparison.Ending)
	for name := range cases {
		left, err := of[name].sides(ctx)
		harness.Must(t, err)
		endings[name] = comparison.Ending{Left: left}
	}
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir})
	for name, e := range endings {
		began := time.Now()
		m, err := shared.blue.Wait(ctx, of[name].namespace, "go", scuted.Over)
		harness.Must(t, err)
		t.Logf("%s: %s %s after the new process was started: %s", name, m.Status.Phase, time.Since(began).Round(time.Second), m.Status.Message)
		e.Again = string(m.Status.Phase)
		e.Then, err = of[name].settled(ctx, &e, rests)
		harness.Must(t, err)
		endings[name] = e
	}
	return endings
}

// said returns the message of a move. It fails the test if the move has already ended.
func said(ctx context.Context, t *testing.T, c *crashed) string {
	t.Helper()
	m, err := shared.blue.Wait(ctx, c.namespace, "go", func(*v1alpha1.Move) bool { return true })
	harness.Must(t, err)
	if scuted.Over(m) {
		t.Fatalf("%s ended before it was killed: %s: %s", c.namespace, m.Status.Phase, m.Status.Message)
	}
	return m.Status.Message
}
