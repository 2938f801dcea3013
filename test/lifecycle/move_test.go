package lifecycle

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scute.dev/eventlog/embedded"
	"scute.dev/test/harness"
	"scute.dev/test/testbed"
	"scute.dev/workflow/task"
	"scute.dev/workflow/tasks/move"
)

// TestMoveIsKilledAndGoesOn runs a move with the task kind, interrupts it in every phase, and makes the next attempt
// with a new instance, as a restarted process would.
func TestMoveIsKilledAndGoesOn(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const namespace = "moved"
	green := bed.Side("green")
	_, err := blue().CreateCluster(ctx, testbed.Tiny(namespace, "m"))
	harness.Must(t, err)
	harness.Must(t, blue().WaitAvailable(ctx, namespace, "m"))
	before, err := bed.Cloud().Snapshot(ctx)
	harness.Must(t, err)
	mark := bed.Cloud().Mark()

	dir := filepath.Join(t.TempDir(), "log")
	to := map[string]any{"kubeconfig": green.KubeconfigPath()}
	s := &step{t: t, namespace: namespace, name: "pivot", with: map[string]any{"clusters": []string{"m"}, "to": to}}
	for i, dieAt := range []string{"have acknowledged the pause", "creating objects on the target", "deleting objects at the source", ""} {
		log, err := embedded.Open(ctx, embedded.Options{Dir: dir})
		harness.Must(t, err)
		s.kind = &move.Kind{Clusters: clusters(), Log: log, Incarnation: "test-" + string(rune('a'+i))}
		living, die := context.WithCancel(ctx)
		s.progress = func(message string) {
			if dieAt != "" && strings.Contains(message, dieAt) {
				die()
			}
		}
		err = s.run(living)
		died := living.Err() != nil
		die()
		if dieAt == "" {
			harness.Must(t, err)
		} else if err == nil || !died {
			t.Fatalf("the attempt was not interrupted at %q: %v", dieAt, err)
		}
		if dieAt == "" {
			// Another attempt finds the move finished, and an undo returns an error.
			harness.Must(t, s.run(ctx))
			if err := s.undoes(ctx); !task.IsFinal(err) || !strings.Contains(err.Error(), "a completed move is not undone") {
				t.Errorf("undo of a finished move = %v, want a final error", err)
			}
		}
		harness.Must(t, log.Close())
	}
	t.Logf("%s", s.output)
	var out struct {
		Move              string
		Clusters, Objects int
	}
	harness.Must(t, json.Unmarshal(s.output, &out))
	if out.Clusters != 1 || out.Objects < 10 || !strings.HasPrefix(out.Move, "moved/run-pivot/") {
		t.Errorf("output = %+v, want one cluster", out)
	}
	harness.Must(t, green.WaitAvailable(ctx, namespace, "m"))
	harness.Must(t, blue().WaitGone(ctx, namespace, "m"))
	after, err := bed.Cloud().Snapshot(ctx)
	harness.Must(t, err)
	if diff := before.Diff(after); len(diff) > 0 {
		t.Errorf("the move changed the cloud:\n%s", strings.Join(diff, "\n"))
	}
	journal, err := bed.Cloud().Since(mark)
	harness.Must(t, err)
	if r := journal.Replacements(); len(r) > 0 {
		t.Errorf("the move replaced machines:\n%s", r)
	}
}

// TestMoveIsUndone rolls back a move that has not been verified, makes another attempt, and refuses a move that is
// impossible.
func TestMoveIsUndone(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const namespace = "unmoved"
	green := bed.Side("green")
	_, err := blue().CreateCluster(ctx, testbed.Tiny(namespace, "u"))
	harness.Must(t, err)
	harness.Must(t, blue().WaitAvailable(ctx, namespace, "u"))
	log, err := embedded.Open(ctx, embedded.Options{Dir: filepath.Join(t.TempDir(), "log")})
	harness.Must(t, err)
	t.Cleanup(func() { _ = log.Close() })

	kind := &move.Kind{Clusters: clusters(), Log: log, Incarnation: "test"}
	s := &step{t: t, kind: kind, namespace: namespace, name: "pivot", with: map[string]any{
		"clusters": []string{"u"}, "to": map[string]any{"kubeconfig": green.KubeconfigPath()},
	}}
	harness.Must(t, s.undoes(ctx)) // before the first attempt
	living, die := context.WithCancel(ctx)
	s.progress = func(message string) {
		if strings.Contains(message, "creating objects on the target") {
			die()
		}
	}
	if err := s.run(living); err == nil {
		t.Fatal("the attempt was not interrupted")
	}
	s.progress = nil
	harness.Must(t, s.undoes(ctx))
	harness.Must(t, green.WaitGone(ctx, namespace, "u"))
	harness.Must(t, blue().WaitAvailable(ctx, namespace, "u"))
	harness.Must(t, s.undoes(ctx))

	// The next attempt is a new move, which is refused because of its selection. A third one succeeds.
	s.with = map[string]any{"clusters": []string{"nobody"}, "to": map[string]any{"kubeconfig": green.KubeconfigPath()}}
	if err := s.run(ctx); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Fatalf("run with an unknown cluster = %v, want an error with its name", err)
	}
	s.with = map[string]any{"clusters": []string{"u"}, "to": map[string]any{"kubeconfig": green.KubeconfigPath()}}
	harness.Must(t, s.run(ctx))
	if !strings.Contains(string(s.output), "-3") {
		t.Errorf("output = %s, want the third move", s.output)
	}
	harness.Must(t, green.WaitAvailable(ctx, namespace, "u"))
}
