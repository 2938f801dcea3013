package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestRestoreDrill loses the log twice during a move, while a run waits for an approval. The daemon is killed while it
// creates objects, its log is backed up, the folder is lost, and the log is restored to another folder. The next daemon
// is killed too, and its log is migrated to a NATS server. The move succeeds, the run continues, and nothing is done
// twice.
func TestRestoreDrill(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const ns = "restored"
	shared.cluster(ctx, t, shared.blue, testbed.Tiny(ns, "tiny"))
	harness.Must(t, shared.blue.PutTarget(ctx, ns, shared.green))
	s := workflowStage(ctx, t, "restored-run")
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	o, kept := &operator{namespace: ns}, filepath.Join(t.TempDir(), "backup")
	before := objects(ctx, t, shared.blue, ns)

	d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir})
	s.create(ctx, t, "release", "tasks:\n"+apply("first", configMap("first", "1"), "")+
		"- {name: ask, kind: Approve, needs: [first], with: {message: 'go on?'}}\n"+apply("second", configMap("second", "1"), ", needs: [ask]"))
	s.until(ctx, t, "release", asks)
	made := madeBy(ctx, t, s, "first")
	harness.Must(t, d.Stop(ctx))

	w, paused := shared.witness(ctx, t), watchPauses(t, shared.blue, ns)
	m := scuted.NewMove(ns, "away", shared.green, "tiny")
	harness.Must(t, shared.blue.Create(ctx, m))
	dies := func(folder, at string) {
		t.Helper()
		t.Setenv("SCUTE_FAULT", at)
		d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: folder, Program: shared.programs.Faulty, Args: []string{"--move-workers", "1"}})
		if over := lifeOf(ctx, t, d, m); over != nil {
			t.Fatalf("move ended before the daemon was killed: phase %s", over.Status.Phase)
		}
	}

	dies(dir, "after:30:move")
	o.run(ctx, t, 0, []string{"backed up: log ", "verified"}, "backup", "log", kept, "--log", dir)
	harness.Must(t, os.RemoveAll(dir))
	dir = filepath.Join(t.TempDir(), "restored")
	o.run(ctx, t, 0, []string{"restored: log ", "verified", "Start the daemon with --log-dir " + dir}, "restore", "log", kept, "--log", dir,
		"--kubeconfig", shared.blue.Side.KubeconfigPath())

	dies(dir, "after:20:move")
	older := filepath.Join(t.TempDir(), "older")
	o.run(ctx, t, 1, []string{"on this management cluster, but the backup ends at", "find a newer backup"}, "restore", "log", kept, "--log", older,
		"--kubeconfig", shared.blue.Side.KubeconfigPath())
	n := startNATS(t)
	there := []string{"--nats", n.url(), "--nats-ca", n.cert, "--nats-cert", n.cert, "--nats-key", n.key}
	migrate := append([]string{"log", "migrate", "--log", dir, "--kubeconfig", shared.blue.Side.KubeconfigPath()}, there...)
	o.run(ctx, t, 0, []string{"moved: log ", "verified", "start the daemon with --nats-url"}, migrate...)
	o.run(ctx, t, 0, []string{"moved before: log "}, migrate...)
	o.run(ctx, t, 1, []string{"the event log was moved", n.url()}, "log", "status", "--log", dir)

	t.Setenv("SCUTE_FAULT", "")
	last := n.replica(t, "")
	over, err := shared.blue.Wait(ctx, ns, "away", scuted.Over)
	harness.Must(t, err)
	ended(ctx, t, over, w, paused)
	if got := objects(ctx, t, shared.green, ns); len(got) != len(before) {
		t.Errorf("objects changed: before %v\nafter %v", names(before), names(got))
	}
	o.run(ctx, t, 0, []string{"succeed of task ask decided by"}, append([]string{"decide", "run", "release", "-n", s.ns, "--task", "ask", "--action", "succeed", "--reason", "the log is back"}, there...)...)
	run := s.until(ctx, t, "release", func(w *v1alpha1.WorkflowRun) bool { return w.Status.FinishedAt != nil }) // the status lags behind
	if run.Status.Phase != v1alpha1.RunSucceeded {
		t.Errorf("phase of release = %s, want Succeeded: %s", run.Status.Phase, run.Status.Message)
	}
	if n := scuted.TaskOf(run, "first").Attempts; n != 1 || madeBy(ctx, t, s, "first") != made {
		t.Errorf("task first has %d attempts, want 1 and an unchanged ConfigMap\n%s", n, scuted.Tasks(run))
	}
	harness.Must(t, last.Exited())
	once(ctx, t, n, over)
}

// madeBy returns the UID of the ConfigMap that a task created.
func madeBy(ctx context.Context, t *testing.T, s *stage, name string) string {
	t.Helper()
	var made corev1.ConfigMap
	harness.Must(t, s.admin.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: name}, &made))
	return string(made.UID)
}

// once checks that three daemons drove the move, and that the log has each object once as created and once as deleted.
func once(ctx context.Context, t *testing.T, n *natsServer, m *v1alpha1.Move) {
	t.Helper()
	log, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: n.url(), TLS: eventlog.TLSFiles{CA: n.cert, Cert: n.cert, Key: n.key}})
	harness.Must(t, err)
	defer log.Close()
	about := eventlog.Aggregate{Kind: eventlog.KindMove, ID: m.Status.MoveID}
	if claims := claimsOf(ctx, t, log, about); claims != 3 {
		t.Errorf("%d daemons claimed the move, want 3", claims)
	}
	records, err := log.Read(ctx, about, 0)
	harness.Must(t, err)
	created, deleted, catalog := make(map[object.Ref]int), make(map[object.Ref]int), mover.NewCatalog()
	for _, r := range records {
		events, err := r.Events()
		harness.Must(t, err)
		for _, e := range events {
			fact, err := catalog.Decode(e)
			harness.Must(t, err)
			switch fact := fact.(type) {
			case mover.Created:
				for ref := range fact.Objects {
					created[ref]++
				}
			case mover.Deleted:
				for _, ref := range fact.Objects {
					deleted[ref]++
				}
			}
		}
	}
	for ref, n := range created {
		if n != 1 || deleted[ref] != 1 {
			t.Errorf("%s: created %d times, deleted %d times, want once each", ref, n, deleted[ref])
		}
	}
	if n := m.Status.Counts.Objects; len(created) != n || len(deleted) != n || n == 0 {
		t.Errorf("the status counts %d objects, the log has %d created and %d deleted", n, len(created), len(deleted))
	}
}
