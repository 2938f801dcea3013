package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/testbed"
)

const replicas = 3

// lane is a cluster of three whose machines are replaced repeatedly, always with the same method.
type lane struct {
	*ground
	name   string // of the cluster and of its namespace
	method v1alpha1.RepairMethod
	hand   bool // without scute: no policy selects it
}

// surge is the duration of a replacement since its request.
type surge struct {
	mark     time.Duration // until scute's annotation; zero by hand
	newcomer time.Duration // until the owner has created the new machine
	end      time.Duration // until the victim no longer exists
	cpu      time.Duration // used by scuted until then
}

// make creates the cluster, and a policy for it unless it is replaced by hand.
func (l *lane) make(ctx context.Context) error {
	_, err := l.side.CreateCluster(ctx, testbed.Cluster{Namespace: l.name, Name: l.name, ControlPlanes: replicas, CertificateExpiryDays: 30})
	if err != nil || l.hand {
		return err
	}
	p := &v1alpha1.RepairPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.name, Name: "bench"},
		Spec: v1alpha1.RepairPolicySpec{
			Methods:     []v1alpha1.RepairMethod{l.method},
			MaxAttempts: 20, // a victim may be a recent replacement, but that is no chain of machines that fail in turn
			Limits: v1alpha1.RepairPolicyLimits{
				PerWindow: 1000, Cooldown: &v1alpha1.Duration{Duration: time.Second}, MassFailure: v1alpha1.PolicyMassFailure{Cooldown: &v1alpha1.Duration{Duration: time.Second}},
			},
		},
	}
	return l.admin.Create(ctx, p)
}

// run replaces the machine that is in the middle by age. It measures when the watch delivers each change, for both in
// the same way.
func (l *lane) run(ctx context.Context) (s surge, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	machines, err := l.machines(ctx)
	if err != nil {
		return s, err
	}
	victim := &machines[len(machines)/2]
	known := make(map[types.UID]bool)
	for i := range machines {
		known[machines[i].UID] = true
	}
	w, err := l.admin.Watch(ctx, &clusterv1.MachineList{}, client.InNamespace(l.name))
	if err != nil {
		return s, fmt.Errorf("watching the machines of %s: %w", l.name, err)
	}
	defer w.Stop()
	before, err := usageOf(l.daemon.PID())
	if err != nil {
		return s, err
	}
	began := time.Now()
	if err := l.ask(ctx, victim); err != nil {
		return s, err
	}
	for e := range w.ResultChan() {
		m, ok := e.Object.(*clusterv1.Machine)
		if !ok {
			return s, fmt.Errorf("watching the machines of %s: %v", l.name, e.Object)
		}
		switch {
		case e.Type == watch.Added && !known[m.UID]:
			if s.newcomer != 0 {
				return s, fmt.Errorf("%s: a second new machine, %s", l.name, m.Name)
			}
			s.newcomer, known[m.UID] = time.Since(began), true
			if err := l.back(ctx); err != nil {
				return s, err
			}
		case e.Type == watch.Modified && m.UID == victim.UID && s.mark == 0 && m.Annotations[v1alpha1.UnhealthyAnnotation] != "":
			s.mark = time.Since(began)
		case e.Type == watch.Deleted && m.UID == victim.UID:
			s.end = time.Since(began)
			after, err := usageOf(l.daemon.PID())
			if err != nil {
				return s, err
			}
			s.cpu = after.cpu - before.cpu
			return s, l.rest(ctx)
		case e.Type == watch.Deleted:
			return s, fmt.Errorf("%s: another machine than the victim is gone: %s", l.name, m.Name)
		}
	}
	return s, fmt.Errorf("%s: no end was seen, only %+v: %w", l.name, s, errors.Join(ctx.Err(), errors.New("the watch is over")))
}

// ask requests the replacement. For scute it sets Cluster API's own annotation, which makes the machine unhealthy at
// once, so that only scute's own time is measured. By hand it makes the same writes to the owner as scute.
func (l *lane) ask(ctx context.Context, victim *clusterv1.Machine) error {
	if !l.hand {
		return l.annotate(ctx, victim, clusterv1.RemediateMachineAnnotation, "")
	}
	if err := l.annotate(ctx, victim, clusterv1.DeleteMachineAnnotation, "yes"); err != nil {
		return err
	}
	if l.method == v1alpha1.MethodRolloutSurge {
		return l.annotate(ctx, victim, clusterv1.MachineCertificatesExpiryDateAnnotation, time.Now().UTC().Format(time.RFC3339))
	}
	return l.scale(ctx, replicas+2)
}

// back restores the replicas after the new machine exists, so that no other one is created.
func (l *lane) back(ctx context.Context) error {
	if !l.hand || l.method == v1alpha1.MethodRolloutSurge {
		return nil
	}
	return l.scale(ctx, replicas)
}

func (l *lane) scale(ctx context.Context, n int) error {
	kcp := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: l.name, Name: l.name + "-control-plane"}}
	if err := l.admin.Patch(ctx, kcp, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n))); err != nil {
		return fmt.Errorf("scaling %s to %d: %w", l.name, n, err)
	}
	return nil
}

func (l *lane) annotate(ctx context.Context, m *clusterv1.Machine, key, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	if err := l.admin.Patch(ctx, m.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("annotating %s with %s: %w", m.Name, key, err)
	}
	return nil
}

// rest waits until the cluster is healthy and nothing remains of a replacement.
func (l *lane) rest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := l.side.WaitAvailable(ctx, l.name, l.name); err != nil {
		return err
	}
	return until(ctx, "nothing is left of the surge of "+l.name, func(ctx context.Context) (string, error) {
		machines, err := l.machines(ctx)
		if err != nil {
			return "", err
		}
		if len(machines) != replicas {
			return fmt.Sprintf("%d machines", len(machines)), nil
		}
		for i := range machines {
			for key := range machines[i].Annotations {
				if key == v1alpha1.UnhealthyAnnotation || key == clusterv1.DeleteMachineAnnotation {
					return key + " on " + machines[i].Name, nil
				}
			}
		}
		requests := &v1alpha1.SurgeRemediationList{}
		if err := l.admin.List(ctx, requests, client.InNamespace(l.name)); err != nil || len(requests.Items) > 0 {
			return "there are requests", err
		}
		return "", nil
	})
}

// machines returns the machines of the lane, the oldest first.
func (l *lane) machines(ctx context.Context) ([]clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	if err := l.admin.List(ctx, list, client.InNamespace(l.name)); err != nil {
		return nil, fmt.Errorf("listing the machines of %s: %w", l.name, err)
	}
	slices.SortFunc(list.Items, func(a, b clusterv1.Machine) int {
		if d := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list.Items, nil
}
