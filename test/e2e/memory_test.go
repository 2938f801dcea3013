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

// TestLargeWorkflowRuns checks that the daemon does not keep the specs of all WorkflowRuns in memory at once. A spec
// may exceed one MiB, so a user who creates many of them could otherwise exhaust the daemon's memory.
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
	for i := range begun { // the daemon reads a spec when the run starts
		s.until(ctx, t, fmt.Sprintf("large-%d", i), func(w *v1alpha1.WorkflowRun) bool { return w.Status.Message != "" })
	}
	after := memory(t, d)
	t.Logf("peak memory is %d MiB, and %d MiB with %d WorkflowRuns of %d KiB", before>>20, after>>20, many, bytes>>10)
	if after-before > many*bytes {
		t.Errorf("peak memory with large WorkflowRuns is %d MiB higher than without them", (after-before)>>20)
	}
}

// memory returns the peak memory of a daemon in bytes.
func memory(t *testing.T, d *scuted.Daemon) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.PID()))
	harness.Must(t, err)
	found := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no VmHWM in %s", text)
	}
	kib, err := strconv.Atoi(string(found[1]))
	harness.Must(t, err)
	return kib << 10
}
