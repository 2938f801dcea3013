package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/testbed"
)

const (
	fleet = "fleet"
	// settling bounds the wait until memory stays the same.
	settling = 12 * time.Minute
	// even is by how much memory may vary meanwhile.
	even = 0.03
)

// stillness is what the daemon costs per minute while nothing happens.
type stillness struct {
	resident, peak float64       // MiB
	cpu            float64       // seconds per minute
	requests       *requests     // in all of window
	window         time.Duration // in which CPU and requests were counted
}

func (r stillness) perMinute(n int) float64 { return float64(n) / r.window.Minutes() }

// measureWatch measures what it costs to watch an idle fleet: copies of a real cluster on a real API server, with no
// controller except scute.
func (b *bench) measureWatch(ctx context.Context, model *specimen) error {
	return b.onGround(ctx, testbed.Options{Bare: true, Audit: true}, func(ctx context.Context, g *ground) error {
		b.say("making %d clusters of %d", b.clusters, replicas)
		if err := model.copies(ctx, g.admin, fleet, b.clusters); err != nil {
			return err
		}
		without, err := b.atRest(ctx, g, "without a policy")
		if err != nil {
			return err
		}
		p := &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: fleet, Name: "bench"}, Spec: v1alpha1.RepairPolicySpec{HealthCheck: new(bool)}}
		began := time.Now()
		if err := g.admin.Create(ctx, p); err != nil {
			return err
		}
		if err := b.watched(ctx, g, p, 0); err != nil {
			return err
		}
		first := time.Since(began)
		alone, err := b.atRest(ctx, g, "policy without health checks")
		if err != nil {
			return err
		}
		patch := client.MergeFrom(p.DeepCopy())
		p.Spec.HealthCheck = nil
		if err := g.admin.Patch(ctx, p, patch); err != nil {
			return err
		}
		began = time.Now()
		if err := b.watched(ctx, g, p, b.clusters); err != nil {
			return err
		}
		checks := time.Since(began)
		full, err := b.atRest(ctx, g, "policy with health checks")
		if err != nil {
			return err
		}
		b.figure("watch.memory", full.resident-without.resident, "MiB")
		b.figure("watch.memory.unchecked", alone.resident-without.resident, "MiB")
		b.figure("watch.memory.idle", without.resident, "MiB")
		b.figure("watch.memory.peak", full.peak, "MiB")
		b.figure("watch.requests", full.perMinute(full.requests.other), "requests/min")
		b.figure("watch.requests.unchecked", alone.perMinute(alone.requests.other), "requests/min")
		b.figure("watch.requests.idle", without.perMinute(without.requests.other), "requests/min")
		b.figure("watch.requests.watches", full.perMinute(full.requests.watches), "requests/min")
		b.figure("watch.requests.lease", full.perMinute(full.requests.leases), "requests/min")
		b.figure("watch.cpu", full.cpu, "s/min")
		b.figure("watch.cpu.unchecked", alone.cpu, "s/min")
		b.figure("watch.cpu.idle", without.cpu, "s/min")
		b.figure("watch.start", first.Seconds(), "s")
		b.figure("watch.checks", checks.Seconds(), "s")
		return nil
	})
}

// watched waits until the policy watches all machines and has created its health checks.
func (b *bench) watched(ctx context.Context, g *ground, p *v1alpha1.RepairPolicy, checks int) error {
	return until(ctx, "the policy watches all machines", func(ctx context.Context) (string, error) {
		if err := g.admin.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return "", err
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineHealthCheckList"))
		if err := g.admin.List(ctx, list, client.InNamespace(fleet)); err != nil {
			return "", err
		}
		if s := &p.Status; s.Clusters != b.clusters || s.Machines != replicas*b.clusters || s.Unhealthy > 0 || len(list.Items) != checks {
			return fmt.Sprintf("it watches %d clusters and %d machines, %d unhealthy, with %d health checks: %s",
				s.Clusters, s.Machines, s.Unhealthy, len(list.Items), s.Message), nil
		}
		return "", nil
	})
}

// atRest waits until the daemon's memory has stayed the same for so long that the runtime has collected and released
// what it can. It returns the daemon's usage in that time.
func (b *bench) atRest(ctx context.Context, g *ground, what string) (stillness, error) {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	var from time.Time
	var first usage
	var at int64
	for least, most := 0.0, 0.0; ; {
		if err := g.daemon.Exited(); err != nil {
			return stillness{}, err
		}
		now, err := usageOf(g.daemon.PID())
		if err != nil {
			return stillness{}, err
		}
		least, most = min(least, now.resident), max(most, now.resident)
		if most-least > even*most {
			from = time.Time{}
		}
		if from.IsZero() {
			from, first, least, most = time.Now(), now, now.resident, now.resident
			if at, err = auditSize(g.side.AuditLog()); err != nil {
				return stillness{}, err
			}
		}
		if window := time.Since(from); window >= b.steady {
			made, err := requestsSince(g.side.AuditLog(), at)
			if err != nil {
				return stillness{}, err
			}
			cpu := (now.cpu - first.cpu).Seconds() / window.Minutes()
			b.say("%s: %.1f MiB, %.2f s CPU a minute; in %s %s", what, now.resident, cpu, window.Round(time.Second), made)
			return stillness{resident: now.resident, peak: now.peak, cpu: cpu, requests: made, window: window}, nil
		}
		select {
		case <-ctx.Done():
			return stillness{}, fmt.Errorf("waiting until the memory of scuted stays the same (%s): %w: from %.1f to %.1f MiB", what, ctx.Err(), least, most)
		case <-look.C:
		}
	}
}
