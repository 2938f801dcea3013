package remediation

import (
	"context"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/test/harness"
	"scute.dev/test/rotation"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestKill kills scuted with SIGKILL at every write of a remediation: at every append to the log, and at every write to
// the API server, after the write and before it. Each process makes one write more than the one before it.
//
// As in real clusters, a new machine takes longer to start than a few of these processes run. If it joined while no
// process ran that could restore the replicas, KubeadmControlPlane would create the second machine that was requested:
// see the known limits in docs/design/remediator.md.
func TestKill(t *testing.T) {
	const startup = 6 * time.Second
	ctx := harness.Deadline(t, 20*time.Minute)
	plain, topology := testbed.Cluster{Startup: startup}, testbed.Cluster{Topology: true, Startup: startup}
	levered := testbed.Cluster{CertificateExpiryDays: 30}
	after, before := scuted.EveryWrite("remediation"), scuted.BeforeEveryWrite("remediation")
	for name, s := range rotation.Cases(t, 3, map[string]struct {
		faults  scuted.Faults
		cluster testbed.Cluster
		method  v1alpha1.RepairMethod
		fault   fault
		members int
		lost    bool // the log is lost after each kill, and restored from a backup
	}{
		"surge, after every write":                            {after, topology, v1alpha1.MethodSurge, notReady, 3, false},
		"surge, before every write":                           {before, plain, v1alpha1.MethodSurge, notReady, 3, false},
		"rollout, after every write":                          {after, levered, v1alpha1.MethodRolloutSurge, notReady, 3, false},
		"rollout, before every write":                         {before, testbed.Cluster{}, v1alpha1.MethodRolloutSurge, notReady, 3, false},
		"handed over, after every write":                      {after, testbed.Cluster{}, v1alpha1.MethodOwnerRemediation, powerLost, 2, false},
		"surge, after every write, the log is lost each time": {after, plain, v1alpha1.MethodSurge, notReady, 3, true},
		"bookkeeping":                                         {scuted.Faults{Class: "bookkeeping", Growing: true}, levered, "", kubeletDead, 3, false},
	}) {
		t.Run(name, func(t *testing.T) {
			w := newWard(ctx, t, s.cluster, func(p *v1alpha1.RepairPolicySpec) {
				if s.method != "" {
					p.Methods = []v1alpha1.RepairMethod{s.method}
				}
			})
			journal := scuted.NewJournal(t.TempDir())
			t.Setenv("SCUTE_FAULT_JOURNAL", journal.Path())
			harness.Must(t, s.fault(ctx, w.cluster, w.victim))
			started := time.Now()
			logDir, deaths := w.live(ctx, t, s.faults, s.lost)
			inLog, err := s.faults.Commits(ctx, logDir, scuted.OfKind(eventlog.KindRemediation))
			harness.Must(t, err)
			r, err := journal.Read(s.faults)
			harness.Must(t, err)
			t.Logf("killed %d times at %s in %s; %d writes were reached, %d of them appends", deaths, s.faults,
				time.Since(started).Round(time.Second), r.Writes, r.Appends)
			if wrong := s.faults.PassedOver(deaths, r, inLog); wrong != "" {
				t.Error(wrong)
			}
			w.healed(ctx, t)
			w.olderKept(ctx, t, w.victim.UID)
			// Killed daemons do not restore replicas, so the owner may have created both requested machines.
			w.quorum.never(t, s.members, 5)
		})
	}
}

// live starts one daemon after the other on one log until the victim is replaced and nothing remains to do.
func (w *ward) live(ctx context.Context, t *testing.T, faults scuted.Faults, lost bool) (logDir string, deaths int) {
	t.Helper()
	in, programs, err := shared.installed()
	harness.Must(t, err)
	logDir, err = in.NewLogDir()
	harness.Must(t, err)
	kept, over := t.TempDir(), make(chan struct{})
	go func() {
		defer close(over)
		for ctx.Err() == nil && !w.over(ctx) {
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	for ; ; deaths++ {
		t.Setenv("SCUTE_FAULT", faults.Point(deaths))
		d := harness.Daemon(t, in, scuted.DaemonOptions{LogDir: logDir, Program: programs.Faulty, Args: []string{"--leader-elect=false"}})
		life, cancel := context.WithTimeout(ctx, 2*time.Minute)
		select {
		case <-d.Done():
			cancel()
			if !d.Killed() {
				t.Fatalf("scuted exited with status %d after %d kills, without a signal: see %s", d.ExitCode(), deaths, d.Log())
			}
			if lost {
				harness.Must(t, in.LoseLog(ctx, logDir, kept))
			}
		case <-over:
			cancel()
			harness.Must(t, d.Stop(ctx))
			if d.Killed() { // it reached its fault point before the request to stop
				deaths++
			}
			return logDir, deaths
		case <-life.Done():
			cancel()
			phase, message := w.diary.now(w.victim.Name)
			t.Fatalf("after %d kills the daemon neither exited nor completed the remediation: %s: %s", deaths, phase, message)
		}
	}
}

// over reports whether the victim was replaced, all machines run, and nothing remains of the remediation.
func (w *ward) over(ctx context.Context) bool {
	now, err := w.list(ctx, true)
	if err != nil || len(now) != len(w.before) {
		return false
	}
	for i := range now {
		if now[i].UID == w.victim.UID || now[i].Status.Phase != string(clusterv1.MachinePhaseRunning) {
			return false
		}
	}
	left, err := w.left(ctx)
	return err == nil && len(left) == 0
}
