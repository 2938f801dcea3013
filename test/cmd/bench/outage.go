package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/testbed"
)

const (
	// outageNamespaces is the number of namespaces of the clusters, each with a policy.
	outageNamespaces = 20
	// outageWorkers is the number of workers of a cluster, all in one failure domain.
	outageWorkers = 3
	// outageTimeout is how long a machine must be not ready until it is unhealthy.
	outageTimeout = 30 * time.Second
	// deciding bounds the wait for all decisions.
	deciding = 15 * time.Minute
	// lasting is how long the daemon is measured during the failure while nothing else changes.
	lasting = 2 * time.Minute
)

// outage is a fleet with a failure domain that fails.
type outage struct {
	*bench
	*ground
	healthy *specimen
	failed  map[string]map[string]any // the status of its objects without power, by name
}

// measureOutage measures what the daemon costs while a failure domain of a large fleet has no power, and checks the
// limits. Some machines elsewhere fail individually. These may be replaced.
func (b *bench) measureOutage(ctx context.Context) error {
	return b.onGround(ctx, testbed.Options{Audit: true}, func(ctx context.Context, g *ground) error {
		o := &outage{bench: b, ground: g}
		if err := o.model(ctx); err != nil {
			return err
		}
		b.say("making %d clusters of %d and %d machines in %d namespaces", b.clusters, replicas, outageWorkers, outageNamespaces)
		if err := o.copies(ctx); err != nil {
			return err
		}
		if err := o.watched(ctx); err != nil {
			return err
		}
		before, err := o.reading()
		if err != nil {
			return err
		}
		b.say("failure domain %s fails; scuted has taken %s", failing, before)
		began := time.Now()
		if err := o.fail(ctx); err != nil {
			return err
		}
		written := time.Since(began)
		if err := o.decided(ctx); err != nil {
			return err
		}
		onset, all := before, time.Since(began)
		seen, err := o.reading()
		if err != nil {
			return err
		}
		b.say("all is decided, %s after the failure began, which took %s to write; scuted took %s", all.Round(time.Second), written.Round(time.Second), seen.since(onset))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lasting):
		}
		end, err := o.reading()
		if err != nil {
			return err
		}
		b.say("while it lasted, in %s: scuted took %s", lasting, end.since(seen))
		told, err := o.told(ctx)
		if err != nil {
			return err
		}
		o.figures(all, seen.since(onset), end.since(seen), end, told)
		return told.check(o.limits())
	})
}

func (o *outage) figures(all time.Duration, onset, still, end reading, told *record) {
	minutes := lasting.Minutes()
	o.figure("outage.machines", float64(o.unhealthy()), "machines")
	o.figure("outage.begun", float64(told.begun()), "remediations")
	o.figure("outage.begun.before", float64(told.started[failing]-told.late), "remediations")
	o.figure("outage.begun.failing", float64(told.late), "remediations")
	o.figure("outage.decisions", float64(told.decisions), "decisions")
	o.figure("outage.time", all.Seconds(), "s")
	o.figure("outage.cpu", onset.cpu.Seconds(), "s")
	o.figure("outage.requests", float64(onset.requests.other), "requests")
	o.figure("outage.log", onset.log, "MiB")
	o.figure("outage.memory.peak", end.peak, "MiB")
	o.figure("outage.lasting.cpu", still.cpu.Seconds()/minutes, "s/min")
	o.figure("outage.lasting.requests", float64(still.requests.other)/minutes, "requests/min")
	o.figure("outage.lasting.log", 1024*still.log/minutes, "KiB/min")
}

// limits returns the default limits of the fleet.
func (o *outage) limits() (atOnce, ofDomain int) { return 10, 5 }

// outagePolicy returns the policy of a namespace. Its own limits are so high that only the limits of the fleet are
// measured.
func outagePolicy(namespace string) *v1alpha1.RepairPolicy {
	timeout := v1alpha1.Duration{Duration: outageTimeout}
	return &v1alpha1.RepairPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bench"},
		Spec: v1alpha1.RepairPolicySpec{
			Workers: true,
			Checks: v1alpha1.RepairChecks{UnhealthyNodeConditions: []v1alpha1.UnhealthyCondition{
				{Type: "Ready", Status: "False", Timeout: timeout}, {Type: "Ready", Status: "Unknown", Timeout: timeout},
			}},
			Limits:   v1alpha1.RepairPolicyLimits{MassFailure: v1alpha1.PolicyMassFailure{Percent: 100}, AtOnce: 100, PerWindow: 100},
			Timeouts: v1alpha1.RepairTimeouts{ScaleUp: &v1alpha1.Duration{Duration: time.Hour}}, // no controller creates the replacement
		},
	}
}

// watched waits until the policies watch all machines and have created their health checks.
func (o *outage) watched(ctx context.Context) error {
	if err := o.admin.Create(ctx, &v1alpha1.RepairLimits{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.RepairLimitsName}}); err != nil {
		return err
	}
	for i := range outageNamespaces {
		if err := o.admin.Create(ctx, outagePolicy(outageNamespace(i))); err != nil {
			return err
		}
	}
	want := o.clusters * (replicas + outageWorkers)
	return until(ctx, "the policies watch all machines", func(ctx context.Context) (string, error) {
		total, err := o.counted(ctx)
		if err != nil || total.Machines == want && total.Unhealthy == 0 {
			return "", err
		}
		return fmt.Sprintf("they watch %d of %d machines, of which %d are unhealthy", total.Machines, want, total.Unhealthy), nil
	})
}

// counted returns the sums of the policies' statuses.
func (o *outage) counted(ctx context.Context) (total v1alpha1.RepairPolicyStatus, err error) {
	list := &v1alpha1.RepairPolicyList{}
	if err := o.admin.List(ctx, list); err != nil {
		return total, err
	}
	for i := range list.Items {
		total.Machines += list.Items[i].Status.Machines
		total.Unhealthy += list.Items[i].Status.Unhealthy
	}
	return total, nil
}

// decided waits until there is a decision about every machine that failed.
func (o *outage) decided(ctx context.Context) error {
	undecided := []v1alpha1.RemediationPhase{"", v1alpha1.RemediationMarked}
	return within(ctx, deciding, "all is decided", func(ctx context.Context) (string, error) {
		total, err := o.counted(ctx)
		if err != nil || total.Unhealthy != o.unhealthy() {
			return fmt.Sprintf("%d of %d machines are found unhealthy", total.Unhealthy, o.unhealthy()), err
		}
		list := &v1alpha1.SurgeRemediationList{}
		if err := o.admin.List(ctx, list); err != nil {
			return "", err
		}
		list.Items = slices.DeleteFunc(list.Items, func(r v1alpha1.SurgeRemediation) bool { return slices.Contains(undecided, r.Status.Phase) })
		if len(list.Items) == o.unhealthy() {
			return "", nil
		}
		return fmt.Sprintf("it is about %d of %d machines", len(list.Items), o.unhealthy()), nil
	})
}

// unhealthy returns the number of machines that fail.
func (o *outage) unhealthy() int {
	n := 0
	for i := range o.clusters {
		n++ // of the control plane
		if outageZone(i) == failing {
			n += outageWorkers
		} else if o.fallsAlone(i) {
			n++
		}
	}
	return n
}

// told stops the daemon and returns what it has recorded.
func (o *outage) told(ctx context.Context) (*record, error) {
	if err := o.daemon.Stop(ctx); err != nil {
		return nil, err
	}
	return readRecord(ctx, o.logDir)
}
