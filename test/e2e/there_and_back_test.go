package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/rotation"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestThereAndBack moves a cluster to the other side and back. During every move scuted is killed and an API server or
// the controllers of a side fail, at random times. No machine is replaced and no object is lost. Objects may differ
// only in what the management cluster assigns (see asMade). Each number is a round of two moves and selects the same
// faults each time.
func TestThereAndBack(t *testing.T) {
	ctx := harness.Deadline(t, 60*time.Minute)
	const ns, rounds = "there-and-back", 10
	share := rotation.Of(t, rounds, "the rounds of two moves")
	shared.cluster(ctx, t, shared.blue, testbed.Cluster{Namespace: ns, Name: "prod", ControlPlanes: 3, Workers: 2, Topology: true, MachineHealthCheck: true})
	annotation(ctx, t, shared.blue, ns, "MachineDeployment", "example.org/kept")
	harness.Await(ctx, t, "the annotation is on the MachineSet too", func() string {
		for name, u := range objects(ctx, t, shared.blue, ns) {
			if _, there := u.GetAnnotations()["example.org/kept"]; strings.HasPrefix(name, "MachineSet ") && !there {
				return "it is not on " + name
			}
		}
		return ""
	})
	annotation(ctx, t, shared.blue, ns, "KubeadmConfig", object.PausedAnnotation)
	harness.Must(t, shared.green.Side.Client().Create(ctx, namespace(ns)))

	logs := make(map[*scuted.Installation]string)
	for from, to := range map[*scuted.Installation]*scuted.Installation{shared.blue: shared.green, shared.green: shared.blue} {
		harness.Must(t, from.PutTarget(ctx, ns, to))
		dir, err := from.NewLogDir()
		harness.Must(t, err)
		logs[from] = dir
	}
	w, before := shared.witness(ctx, t), objects(ctx, t, shared.blue, ns)
	for n := range rounds {
		if !share.Takes(n) {
			continue
		}
		j := &journey{chance: rand.New(rand.NewPCG(uint64(n), 0)), namespace: ns, logs: logs} //nolint:gosec // the same faults each time
		j.move(ctx, t, fmt.Sprintf("there-%d", n), shared.blue, shared.green)
		j.move(ctx, t, fmt.Sprintf("back-%d", n), shared.green, shared.blue)
		after := objects(ctx, t, shared.blue, ns)
		untouched(t, after)
		if diff := cmp.Diff(asMade(t, before), asMade(t, after)); diff != "" {
			t.Fatalf("objects differ after round %d:\n%s", n, diff)
		}
	}
	w.clean(ctx, t)
}

// asMade returns the part of each object that must not change. UIDs, versions, times, the status, and the field
// managers depend on the management cluster.
func asMade(t *testing.T, objects map[string]*unstructured.Unstructured) map[string]any {
	t.Helper()
	out := make(map[string]any, len(objects))
	for name, u := range objects {
		u = u.DeepCopy()
		unstructured.RemoveNestedField(u.Object, "status")
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		owners := u.GetOwnerReferences()
		for i := range owners {
			owners[i].UID = ""
		}
		u.SetOwnerReferences(owners)
		var plain any // one set of types, wherever it was read
		data, err := json.Marshal(u.Object)
		harness.Must(t, err)
		harness.Must(t, json.Unmarshal(data, &plain))
		out[name] = plain
	}
	return out
}

// journey is a round of moves.
type journey struct {
	chance    *rand.Rand
	namespace string
	logs      map[*scuted.Installation]string
}

// move moves everything in the namespace. scuted is killed three times at one of its writes, and something else fails
// during each process.
func (j *journey) move(ctx context.Context, t *testing.T, name string, from, to *scuted.Installation) {
	t.Helper()
	paused := watchPauses(t, from, j.namespace)
	m := scuted.NewMove(j.namespace, name, to, "prod")
	harness.Must(t, from.Create(ctx, m))
	started := time.Now()
	var over *v1alpha1.Move
	for life := 0; over == nil; life++ {
		if life == 20 {
			t.Fatalf("%s: scuted exits again and again: see the lines above", name)
		}
		point := "" // no fault point
		if life < 3 {
			point = fmt.Sprintf("after:%d:move", 1+j.chance.IntN(60))
		}
		t.Setenv("SCUTE_FAULT", point)
		d := harness.Daemon(t, from, scuted.DaemonOptions{LogDir: j.logs[from], Program: shared.programs.Faulty})
		what, fails := j.fault(from, to)
		failed := make(chan error, 1)
		go func() {
			defer close(failed)
			failed <- fails(ctx)
		}()
		over = j.live(ctx, t, from, d, m, failed)
		harness.Must(t, <-failed)
		t.Logf("%s: process %d, fault %q: exit status %d; meanwhile %s", name, life, point, d.ExitCode(), what)
	}
	if over.Status.Phase != mover.PhaseSucceeded {
		t.Fatalf("%s: phase = %s, want Succeeded: %s", name, over.Status.Phase, over.Status.Message)
	}
	t.Logf("%s: moved %d objects in %s", name, over.Status.Counts.Objects, time.Since(started).Round(time.Second))
	paused.none(t)
	if left := objects(ctx, t, from, j.namespace); len(left) > 0 {
		t.Fatalf("%s: objects remain at the source: %v", name, names(left))
	}
	harness.Must(t, to.Side.WaitAvailable(ctx, j.namespace, "prod"))
	admin, err := from.Client()
	harness.Must(t, err)
	harness.Must(t, admin.Delete(ctx, m))
}

// live waits until the move ends, and returns it, or until scuted has exited, and returns nil. scuted exits by itself
// if it starts together with the API server, which has no permissions in its first moment. A kubelet would restart it,
// and so does move. live fails the test if the failed component cannot be restarted.
func (j *journey) live(
	ctx context.Context, t *testing.T, on *scuted.Installation, d *scuted.Daemon, m *v1alpha1.Move, failed <-chan error,
) *v1alpha1.Move {
	t.Helper()
	life, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	ended := make(chan *v1alpha1.Move, 1)
	go func() {
		if over, err := on.Wait(life, m.Namespace, m.Name, scuted.Over); err == nil {
			ended <- over
		}
	}()
	for {
		select {
		case err := <-failed:
			harness.Must(t, err)
			failed = nil
		case <-d.Done():
			return nil
		case over := <-ended:
			harness.Must(t, d.Stop(ctx))
			return over
		case <-life.Done():
			stuck(ctx, t, on, m, "the daemon neither dies nor ends the move")
		}
	}
}

// fault returns a failure of an API server or of the controllers of a side. It begins within the first two seconds of a
// process of scuted and lasts at most one second.
func (j *journey) fault(from, to *scuted.Installation) (what string, fails func(context.Context) error) {
	side := []*testbed.Side{from.Side, to.Side}[j.chance.IntN(2)]
	what, stop, start := "the API server of ", side.KillAPIServer, side.ReviveAPIServer
	if j.chance.IntN(2) == 0 {
		what, start = "the controllers of ", side.StartControllers
		stop = func(context.Context) error { return side.StopControllers() }
	}
	after, during := time.Duration(j.chance.IntN(2000))*time.Millisecond, time.Duration(j.chance.IntN(1000))*time.Millisecond
	return fmt.Sprintf("%s%s fail after %s for %s", what, side.Name(), after, during), func(ctx context.Context) error {
		for _, step := range []func(context.Context) error{lasts(after), stop, lasts(during), start} {
			if err := step(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// lasts returns a function that waits for d.
func lasts(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}
}
