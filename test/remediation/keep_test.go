package remediation

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// keptForForensics: two workers fail one after the other. Each is replaced, and its infrastructure stays. The first is released by a
// human, the second when its time is over.
func keptForForensics(ctx context.Context, t *testing.T) {
	const keepFor = time.Minute
	c := newCluster(ctx, t, testbed.Cluster{ControlPlanes: 1, Workers: 2})
	p := policy(ctx, t, c.Namespace, func(s *v1alpha1.RepairPolicySpec) {
		workers(s)
		s.Forensics = &v1alpha1.RepairForensics{KeepFor: v1alpha1.Duration{Duration: keepFor}}
	})
	before := c.machines(ctx, false)
	first, second := &before[0], &before[1]

	harness.Must(t, notReady(ctx, c, first))
	c.keeps(ctx, t, first)
	c.annotate(ctx, first, remediator.KeepHook, "72h")
	harness.Must(t, notReady(ctx, c, second)) // it is replaced though another one is kept
	deleted := c.keeps(ctx, t, second)
	harness.Await(ctx, t, "the policy says what is kept", func() string {
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(p), p))
		if p.Status.Kept == 2 && p.Status.Active == 0 && p.Status.Unhealthy == 0 {
			return ""
		}
		return fmt.Sprintf("kept %d, active %d, unhealthy %d", p.Status.Kept, p.Status.Active, p.Status.Unhealthy)
	})

	c.annotate(ctx, first, remediator.KeepHook, "") // what a human does
	c.vanishes(ctx, t, first)
	c.vanishes(ctx, t, second)
	if kept := time.Since(deleted); kept < keepFor {
		t.Errorf("%s was kept for %s", second.Name, kept)
	}
	now := c.machines(ctx, false)
	if len(now) != 2 || slices.ContainsFunc(now, func(m clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() }) {
		t.Errorf("at the end there are %d workers, or one is being deleted", len(now))
	}
	harness.Await(ctx, t, "the policy keeps nothing", func() string {
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(p), p))
		if p.Status.Kept == 0 {
			return ""
		}
		return fmt.Sprintf("kept %d", p.Status.Kept)
	})
}

// keeps waits until a worker is replaced, and is drained and kept. It returns when it was deleted.
func (c *cluster) keeps(ctx context.Context, t *testing.T, victim *clusterv1.Machine) (deleted time.Time) {
	t.Helper()
	last := ""
	harness.Await(ctx, t, victim.Name+" is replaced and kept", func() (missing string) {
		defer func() { last = missing }()
		m := &clusterv1.Machine{}
		if err := shared.admin.Get(ctx, client.ObjectKeyFromObject(victim), m); apierrors.IsNotFound(err) {
			t.Fatalf("%s is gone; before, %s", victim.Name, last)
		} else if err != nil {
			return err.Error()
		}
		deleting := conditions.Get(m, clusterv1.MachineDeletingCondition)
		_, note := m.Annotations["scute.dev/kept"]
		_, counted := m.Labels[clusterv1.MachineDeploymentUniqueLabel]
		request := &v1alpha1.SurgeRemediation{}
		err := shared.admin.Get(ctx, client.ObjectKeyFromObject(victim), request)
		switch {
		case apierrors.IsNotFound(err), err == nil && request.Status.Phase != v1alpha1.RemediationSucceeded:
			return fmt.Sprintf("its remediation is %s: %s", request.Status.Phase, request.Status.Message)
		case err != nil:
			return err.Error()
		case deleting == nil || deleting.Reason != clusterv1.MachineDeletingWaitingForPreTerminateHookReason:
			return "its deletion does not wait for hooks"
		case !note || counted:
			return fmt.Sprintf("it has scute's note: %t; it has the labels of its MachineSet: %t", note, counted)
		}
		deleted = m.DeletionTimestamp.Time
		return ""
	})
	infra := &infrav1.DevMachine{}
	harness.Must(t, shared.admin.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: victim.Spec.InfrastructureRef.Name}, infra))
	if !infra.DeletionTimestamp.IsZero() {
		t.Errorf("the infrastructure of %s is being deleted", victim.Name)
	}
	return deleted
}

// vanishes waits until a worker is gone, with its infrastructure.
func (c *cluster) vanishes(ctx context.Context, t *testing.T, victim *clusterv1.Machine) {
	t.Helper()
	harness.Await(ctx, t, victim.Name+" is gone", func() string {
		infra := client.ObjectKey{Namespace: c.Namespace, Name: victim.Spec.InfrastructureRef.Name}
		machine, err := shared.admin.Get(ctx, client.ObjectKeyFromObject(victim), &clusterv1.Machine{}), shared.admin.Get(ctx, infra, &infrav1.DevMachine{})
		if apierrors.IsNotFound(machine) && apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("machine: %v, infrastructure: %v", machine, err)
	})
}
