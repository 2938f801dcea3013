package remediation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

// TestUpdatesOfAMachine checks the lines that a pipe receives for the changes of a machine.
func TestUpdatesOfAMachine(t *testing.T) {
	n, m := newMachineNoun(&machineSource{}), &machine{Namespace: "fleet", Name: "cp-1", Health: running}
	expect := func(want string) {
		t.Helper()
		if got := n.Updates(m); len(got) != 1 || got[0].Text != want {
			t.Errorf("Updates = %v, want %s", got, want)
		}
	}
	expect("Running")
	m.Health, m.Reason = unhealthy, "NodeReady is Unknown"
	expect("Unhealthy (NodeReady is Unknown)")
	m.Health, m.Reason = deleted, ""
	m.Remediation = &machineRemediation{Phase: "Replacing", Decision: "OwnerRemediation", Outlook: &remediator.Outlook{Rule: "c", Next: "cp-4 becomes ready"}}
	expect("Deleted; Replacing by OwnerRemediation, rule c; next: cp-4 becomes ready")
}

// TestAMisspelledCluster checks that the name of a cluster that does not exist fails with a suggestion.
func TestAMisspelledCluster(t *testing.T) {
	s := &machineSource{cluster: "prodd", session: &kit.Session[*machine]{Cluster: &connect.Cluster{Config: &rest.Config{Host: "here"}}}}
	_, err := s.inCluster(unhealthyFleet())
	if want := `cluster prodd: there is no such cluster on here, did you mean "prod"?`; err == nil || err.Error() != want {
		t.Errorf("inCluster = %v, want %s", err, want)
	}
}

// TestAWatchedMachineIsDeleted checks that a machine is read until it is deleted.
func TestAWatchedMachineIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		err := (&machineSource{}).poll(t.Context(), func() (bool, error) {
			if reads++; reads < 3 {
				return false, nil
			}
			return false, kit.ErrNotFound
		})
		if !errors.Is(err, kit.ErrNotFound) || reads != 3 {
			t.Errorf("poll = %v after %d reads", err, reads)
		}
	})
}

// sessionOf returns a session of machines in namespace fleet of a cluster with two machines, which
// writes to out.
func sessionOf(t *testing.T, out *lineWriter) *kit.Session[*machine] {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), ownerkind.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	prod, one, two := clusterOf("prod"), machineOf("prod", "prod-control-plane-h2ttv"), machineOf("prod", "prod-control-plane-x7k2p")
	env := &cli.Env{
		Out: out, Err: out, Name: "scutectl", Color: cli.ColorNever, Getenv: func(string) string { return "" }, Now: now,
		Size: func(any) (int, int, bool) { return 0, 0, false },
	}
	s := &machineSource{live: true}
	s.session = &kit.Session[*machine]{
		Source: s, Noun: newMachineNoun(s), Kit: &kit.Kit{Flags: connect.New(), Env: env},
		Cluster: &connect.Cluster{
			Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(&prod, &one, &two).Build(), Config: &rest.Config{Host: "here"}, Namespace: "fleet",
		},
	}
	return s.session
}

// TestAMisspelledMachine checks that the name of a machine that does not exist fails with a suggestion.
func TestAMisspelledMachine(t *testing.T) {
	_, err := sessionOf(t, nil).GetWithHint(t.Context(), kit.Key("fleet", "prod-control-plane-h2tv"))
	if want := `machine prod-control-plane-h2tv in namespace fleet on here: not found, did you mean "prod-control-plane-h2ttv"?`; err == nil || err.Error() != want {
		t.Errorf("GetWithHint = %v, want %s", err, want)
	}
}

// TestADeletedMachineIsPrinted checks that a pipe receives a line for a machine that was deleted,
// and that a watch of this machine ends.
func TestADeletedMachineIsPrinted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		all, one := &lineWriter{written: make(chan string, 16)}, &lineWriter{written: make(chan string, 16)}
		every, single := sessionOf(t, all), sessionOf(t, one)
		single.Cluster = every.Cluster
		ended := make(chan error, 2)
		go func() { ended <- every.FollowAll(ctx, "fleet", &cli.Format{}) }()
		go func() { ended <- single.Follow(ctx, kit.Key("fleet", "prod-control-plane-h2ttv"), &cli.Format{}) }()
		all.waitFor(t, "fleet/prod-control-plane-x7k2p Running")
		one.waitFor(t, "Running")
		gone := machineOf("prod", "prod-control-plane-h2ttv")
		if err := every.Cluster.Client.Delete(ctx, &gone); err != nil {
			t.Fatal(err)
		}
		all.waitFor(t, "fleet/prod-control-plane-h2ttv deleted\n")
		if err := <-ended; !errors.Is(err, kit.ErrGone) || !strings.HasSuffix(err.Error(), "it was deleted") {
			t.Errorf("Follow = %v, want ErrGone", err)
		}
		stop()
		if code, _ := cli.Code(<-ended); code != cli.ExitInterrupted {
			t.Errorf("FollowAll ended with %d, want ExitInterrupted", code)
		}
	})
}
