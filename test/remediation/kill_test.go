package remediation

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestKill kills scuted with SIGKILL at every write that a remediation makes: every append to the log, and every write to
// the API server, after it was done and before it is sent. Each process gets one write further than the one before it.
func TestKill(t *testing.T) {
	ctx := deadline(t, 20*time.Minute)
	topology := testbed.Cluster{Topology: true}
	levered := testbed.Cluster{CertificateExpiryDays: 30}
	for _, s := range []struct {
		name, fault string
		cluster     testbed.Cluster
		method      v1alpha1.RepairMethod
		sick        fault
		members     int
		atLeast     int // deaths; fewer would mean that fault points were passed over
	}{
		{"surge, after every write", "after:1:remediation", topology, v1alpha1.MethodSurge, notReady, 3, 8},
		{"surge, before every write", "before:2:remediation", testbed.Cluster{}, v1alpha1.MethodSurge, notReady, 3, 8},
		{"rollout, after every write", "after:1:remediation", levered, v1alpha1.MethodRolloutSurge, notReady, 3, 6},
		{"rollout, before every write", "before:2:remediation", testbed.Cluster{}, v1alpha1.MethodRolloutSurge, notReady, 3, 6},
		{"handed over, after every write", "after:1:remediation", testbed.Cluster{}, v1alpha1.MethodOwnerRemediation, powerLost, 2, 4},
		{"bookkeeping", "after:+:bookkeeping", levered, "", kubeletDead, 3, 5},
	} {
		t.Run(s.name, func(t *testing.T) {
			w := newWard(ctx, t, s.cluster, func(p *v1alpha1.RepairPolicySpec) {
				if s.method != "" {
					p.Methods = []v1alpha1.RepairMethod{s.method}
				}
			})
			journal := filepath.Join(t.TempDir(), "writes")
			t.Setenv("SCUTE_FAULT_JOURNAL", journal)
			must(t, s.sick(ctx, w.cluster, w.victim))
			started := time.Now()
			deaths := w.live(ctx, t, s.fault)
			writes, appends := reached(t, journal)
			t.Logf("killed %d times at %s in %s; %d writes were reached in all, %d of them appends", deaths, s.fault,
				time.Since(started).Round(time.Second), writes, appends)
			if deaths < s.atLeast {
				t.Errorf("only %d deaths, fewer than %d: fault points were passed over", deaths, s.atLeast)
			}
			w.healed(ctx, t)
			w.veterans(ctx, t, w.victim.UID)
			// Dead daemons put nothing back: the owner may have made both machines that it was asked for.
			w.quorum.never(t, s.members, 5)
		})
	}
}

// live starts daemons, one after the other, until the victim is replaced and nothing is left to do.
func (w *ward) live(ctx context.Context, t *testing.T, fault string) (deaths int) {
	t.Helper()
	in, programs, err := shared.installed()
	must(t, err)
	logDir, err := in.NewLogDir()
	must(t, err)
	over := make(chan struct{})
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
		// A daemon that always dies at its first claims and statuses makes no headway: each life gets one further (+).
		t.Setenv("SCUTE_FAULT", strings.Replace(fault, "+", strconv.Itoa(deaths+1), 1))
		d, err := in.Start(scuted.DaemonOptions{LogDir: logDir, Program: programs.Faulty, Args: []string{"--leader-elect=false"}})
		must(t, err)
		life, cancel := context.WithTimeout(ctx, 2*time.Minute)
		select {
		case <-d.Done():
			cancel()
			if code := d.ExitCode(); code != -1 { // -1: by a signal
				t.Fatalf("scuted ended by itself with status %d after %d deaths: see %s", code, deaths, d.Log())
			}
		case <-over:
			cancel()
			must(t, d.Stop(ctx))
			return deaths
		case <-life.Done():
			cancel()
			phase, message := w.diary.now(w.victim.Name)
			t.Fatalf("after %d deaths the daemon neither dies nor ends the remediation: %s: %s", deaths, phase, message)
		}
	}
}

// over says whether the victim is gone, there are as many machines as before, all run, and nothing is left to do.
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

// reached reads the fault points' journal: a line for each write that was reached.
func reached(t *testing.T, journal string) (writes, appends int) {
	t.Helper()
	f, err := os.Open(journal)
	must(t, err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		writes++
		if strings.HasPrefix(s.Text(), "APPEND ") {
			appends++
		}
	}
	if writes == 0 {
		t.Fatal("no write was counted")
	}
	return writes, appends
}
