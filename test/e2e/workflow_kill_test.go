package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/test/harness"
	"scute.dev/test/rotation"
	"scute.dev/test/scuted"
	"scute.dev/workflow"
)

// TestWorkflowKills kills scuted with SIGKILL at every write of a run, to the log or to the API server. For each write
// there is one run, which another daemon completes. All runs end in the same way, and no step that succeeded runs
// again.
func TestWorkflowKills(t *testing.T) {
	ctx := harness.Deadline(t, 10*time.Minute)
	for _, c := range []struct {
		name, fault string
		phase       v1alpha1.RunPhase
		spec        string
	}{
		// Hooks, two branches, a failure that starts another branch, an ignored failure, a retry that recreates, and a
		// join.
		{"after every write", "after", v1alpha1.RunDegraded, "hooks:\n  pre: [{name: first, kind: Apply, with: {manifests: [" + configMap("RUN-pre", "1") + "]}}]\n" +
			"  post: [{name: last, kind: Apply, with: {manifests: [" + configMap("RUN-post", "1") + "]}}]\ntasks:\n" +
			apply("a", configMap("RUN-a", "1")+", "+configMap("RUN-a2", "1"), ", before: [{name: check, kind: Apply, with: {manifests: ["+configMap("RUN-check", "1")+"]}}]") +
			apply("fails", pod("RUN-fails", crashing), ", retry: {max: 1, delay: 10ms, recreate: true}") +
			apply("direct", configMap("RUN-direct", "1"), ", needs: [fails]") +
			apply("instead", configMap("RUN-instead", "1"), ", needs: [{task: fails, on: Failure}]") +
			apply("ignored", pod("RUN-ignored", crashing), ", needs: [a], failurePolicy: Ignore") +
			apply("joined", configMap("RUN-joined", "${tasks.a.output.objects.0.name}"), ", needs: [a, ignored, {task: direct, optional: true}, {task: instead, optional: true}]")},
		// Created objects are deleted, unchanged objects stay, and changed objects are restored.
		{"before every write of a rollback", "before", v1alpha1.RunRolledBack, "failurePolicy: Rollback\ntasks:\n" +
			apply("a", configMap("RUN-a", "1"), "") +
			"- {name: mine, kind: Apply, needs: [a], with: {force: true, manifests: [" + configMap("mine", "RUN") + "]}}\n" +
			apply("b", configMap("RUN-b", "1")+", "+configMap("RUN-b2", "1"), ", needs: [a]") +
			apply("fails", pod("RUN-fails", crashing), ", needs: [b, mine]")},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &matrix{stage: workflowStage(ctx, t, "killed-"+c.fault), fault: c.fault, spec: c.spec, phase: c.phase}
			mine := &corev1.ConfigMap{Data: map[string]string{"v": "user's"}}
			mine.Namespace, mine.Name = m.ns, "mine"
			harness.Must(t, m.admin.Create(ctx, mine))
			var err error
			m.dir, err = shared.blue.NewLogDir()
			harness.Must(t, err)
			started, deaths := time.Now(), 0
			m.want, _ = m.play(ctx, t, 0)
			writes := rotation.Of(t, 8, "the writes of a run")
			for n := 1 + writes.First; ; n += writes.Of {
				got, died := m.play(ctx, t, n)
				if diff := cmp.Diff(m.want, got); diff != "" {
					t.Fatalf("killed %s write %d, the end differs (-uninterrupted +killed):\n%s", c.fault, n, diff)
				}
				if !died {
					break
				}
				deaths++
			}
			runs, again := m.ranTwice(ctx, t)
			t.Logf("%s: killed at each of %d writes in %s; %d runs, %d tasks, none ran twice", c.phase, deaths, time.Since(started).Round(time.Second), runs, again)
		})
	}
}

// matrix is a run that is repeated with a kill at each write.
type matrix struct {
	*stage
	dir, fault, spec string
	phase            v1alpha1.RunPhase
	want             map[string]string
}

// play runs the WorkflowRun once, killed at its n-th write (never if n is 0), and returns how it ended, and whether it
// was killed.
func (m *matrix) play(ctx context.Context, t *testing.T, n int) (end map[string]string, died bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	name := fmt.Sprintf("run%03d", n)
	m.create(ctx, t, name, strings.ReplaceAll(m.spec, "RUN", name))
	if n > 0 {
		died = m.doomed(ctx, t, name, n)
	}
	if n == 0 || died {
		d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: m.dir})
		m.rests(ctx, t, name, m.phase)
		harness.Must(t, d.Stop(ctx))
	}
	return m.end(ctx, t, name), died
}

// doomed starts a daemon that is killed at its n-th write, and reports whether it was. If not, the whole run has fewer
// writes.
func (m *matrix) doomed(ctx context.Context, t *testing.T, name string, n int) bool {
	t.Helper()
	faults := scuted.Faults{Before: m.fault == "before", Class: "run", First: n}
	journal := scuted.NewJournal(t.TempDir())
	t.Setenv("SCUTE_FAULT", faults.Point(0))
	t.Setenv("SCUTE_FAULT_JOURNAL", journal.Path())
	d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: m.dir, Program: shared.programs.Faulty})
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan error, 1)
	go func() {
		_, err := shared.blue.WaitWorkflowRun(life, m.ns, name, scuted.Rests)
		over <- err
	}()
	select {
	case <-d.Done():
		if !d.Killed() {
			t.Fatalf("scuted exited with status %d, without a signal: see %s", d.ExitCode(), d.Log())
		}
		return true
	case err := <-over:
		harness.Must(t, err)
		harness.Must(t, d.Stop(ctx))
		if d.Killed() { // it reached its fault point before the request to stop
			return true
		}
	}
	inLog, err := faults.Commits(ctx, m.dir, func(a eventlog.Aggregate) bool {
		return a.Kind == eventlog.KindRun && strings.HasPrefix(a.ID, m.ns+"/"+name+"/")
	})
	harness.Must(t, err)
	r, err := journal.Read(faults)
	harness.Must(t, err)
	if wrong := faults.PassedOver(0, r, inLog); wrong != "" {
		t.Error(wrong)
	}
	return false
}

// end returns how a run ended: its tasks, and the objects that have its name, with the name left out.
func (m *matrix) end(ctx context.Context, t *testing.T, name string) map[string]string {
	t.Helper()
	var w v1alpha1.WorkflowRun
	harness.Must(t, m.admin.Get(ctx, client.ObjectKey{Namespace: m.ns, Name: name}, &w))
	end := map[string]string{"phase": string(w.Status.Phase), "message": w.Status.Message, "progress": w.Status.Progress}
	for i := range w.Status.Tasks {
		task := &w.Status.Tasks[i]
		end["task "+task.Name] = fmt.Sprintf("%s %s", task.Phase, task.Verdict)
	}
	var configMaps corev1.ConfigMapList
	var pods corev1.PodList
	harness.Must(t, m.admin.List(ctx, &configMaps, inNamespace(m.ns)))
	harness.Must(t, m.admin.List(ctx, &pods, inNamespace(m.ns)))
	for i := range configMaps.Items {
		if o := &configMaps.Items[i]; strings.HasPrefix(o.Name, name) || o.Name == "mine" {
			end["ConfigMap "+o.Name] = fmt.Sprint(o.Data, o.Labels)
		}
	}
	for i := range pods.Items {
		if o := &pods.Items[i]; strings.HasPrefix(o.Name, name) {
			end["Pod "+o.Name] = string(o.Status.Phase)
		}
	}
	plain := make(map[string]string, len(end))
	for k, v := range end {
		plain[strings.ReplaceAll(k, name, "RUN")] = strings.ReplaceAll(v, name, "RUN")
	}
	return plain
}

// ranTwice checks in the log that no step is started again after it succeeded. It returns the number of runs and of
// these steps.
func (m *matrix) ranTwice(ctx context.Context, t *testing.T) (runs, succeeded int) {
	t.Helper()
	log, err := embedded.Open(ctx, embedded.Options{Dir: m.dir})
	harness.Must(t, err)
	defer log.Close()
	catalog := workflow.NewCatalog()
	done := make(map[string]map[string]bool)
	head, err := log.Head(ctx)
	harness.Must(t, err)
	follow, stop := context.WithCancel(ctx)
	defer stop()
	_ = log.Follow(follow, 0, func(r eventlog.Record) error {
		if r.Aggregate.Kind == eventlog.KindRun {
			if done[r.Aggregate.ID] == nil {
				done[r.Aggregate.ID] = make(map[string]bool)
			}
			events, err := r.Events()
			harness.Must(t, err)
			for _, raw := range events {
				fact, err := catalog.Decode(raw)
				harness.Must(t, err)
				again(t, r.Aggregate.ID, done[r.Aggregate.ID], fact)
			}
		}
		if r.Seq == head {
			stop()
		}
		return nil
	})
	for _, id := range slices.Sorted(maps.Keys(done)) {
		succeeded += len(done[id])
	}
	return len(done), succeeded
}

// again fails the test if a step is started after it succeeded.
func again(t *testing.T, id string, done map[string]bool, fact workflow.Event) {
	t.Helper()
	switch e := fact.(type) {
	case workflow.StepSucceeded:
		done[e.Task+" "+e.Step] = true
	case workflow.TaskSucceeded:
		done[e.Task+" "+e.Step] = true
	case workflow.TaskStarted:
		if done[e.Task+" "+e.Step] {
			raw, _ := json.Marshal(e)
			t.Errorf("%s: a step ran again after it succeeded: %s", id, raw)
		}
	}
}
