package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// TestLargeWorkflowRuns: the specs of WorkflowRuns, which may have more than a MiB each, are not in memory at once, so that somebody who may make
// many does not end the daemon.
func TestLargeWorkflowRuns(t *testing.T) {
	const (
		many  = 100
		bytes = 1_300_000
		begun = 20
	)
	ctx := harness.Deadline(t, 5*time.Minute)
	s := workflowStage(ctx, t, "large-runs")
	d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{})
	s.run(ctx, t, "small", v1alpha1.RunSucceeded, "tasks:\n"+apply("a", configMap("a", "1"), ""))
	before := memory(t, d)
	harness.Must(t, d.Stop(ctx))

	large := strings.Repeat("x", bytes)
	making, made := errgroup.WithContext(ctx)
	making.SetLimit(4)
	for i := range many {
		making.Go(func() error {
			w, err := scuted.NewWorkflowRun(s.ns, fmt.Sprintf("large-%d", i), s.account, "suspend: true\ntasks:\n"+apply("a", configMap("a", large), ""))
			if err != nil {
				return err
			}
			return s.admin.Create(made, w)
		})
	}
	harness.Must(t, making.Wait())
	d = harness.Daemon(t, shared.blue, scuted.DaemonOptions{})
	for i := range begun { // each is read when it begins
		s.until(ctx, t, fmt.Sprintf("large-%d", i), func(w *v1alpha1.WorkflowRun) bool { return w.Status.Message != "" })
	}
	after := memory(t, d)
	t.Logf("%d MiB, and %d MiB with %d of %d KiB", before>>20, after>>20, many, bytes>>10)
	if after-before > many*bytes {
		t.Errorf("it had %d MiB more in memory than without them", (after-before)>>20)
	}
}

// memory is the most that a daemon has had in memory.
func memory(t *testing.T, d *scuted.Daemon) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.PID()))
	harness.Must(t, err)
	found := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s does not say how much it has", text)
	}
	kib, err := strconv.Atoi(string(found[1]))
	harness.Must(t, err)
	return kib << 10
}
