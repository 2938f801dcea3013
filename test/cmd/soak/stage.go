package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
	"scute.dev/test/soak"
	"scute.dev/test/stack"
	"scute.dev/test/testbed"
)

// Names and sizes of the stage.
const (
	fleet         = "fleet" // namespace of the clusters that are never moved
	roam          = "roam"  // namespace of the cluster that is moved
	runsNamespace = "runs"
	account       = "runs" // account of the WorkflowRuns
	policyName    = "repair"

	controlPlanes = 3
	workers       = 1
)

// clusters returns the clusters that are created on blue at the beginning.
func clusters() []testbed.Cluster {
	return []testbed.Cluster{
		{Namespace: fleet, Name: "plain", ControlPlanes: controlPlanes, Workers: workers, CertificateExpiryDays: 30},
		{Namespace: fleet, Name: "classy", ControlPlanes: controlPlanes, Workers: workers, Topology: true},
		{Namespace: roam, Name: "roamer", ControlPlanes: controlPlanes, Workers: workers, Topology: true},
	}
}

func places() soak.Places {
	p := soak.Places{Sides: []string{"blue", "green"}}
	for _, c := range clusters() {
		if c.Namespace == roam {
			p.Roamer = c.Namespace + "/" + c.Name
		} else {
			p.Clusters = append(p.Clusters, c.Namespace+"/"+c.Name)
		}
	}
	return p
}

// side is a management cluster with scute installed.
type side struct {
	*scuted.Installation
	// admin does not cache, and knows the kinds of Cluster API and of scute.
	admin  client.Client
	keeper *keeper
	// server is a semaphore for the faults of the side's servers.
	server  chan struct{}
	metrics string
}

// stage is what the faults act on.
type stage struct {
	bed   *testbed.Bed
	ports *ports.Block
	sides []*side
}

func (s *stage) side(name string) *side {
	for _, x := range s.sides {
		if x.Side.Name() == name {
			return x
		}
	}
	return nil
}

// prepare starts both sides and installs scute on them. If it fails, close cleans up.
func (s *stage) prepare(ctx context.Context, r *report) error {
	programs, err := scuted.Build(ctx, r.lines())
	if err != nil {
		return err
	}
	if s.bed, err = testbed.Start(ctx, testbed.Options{Sides: places().Sides, Log: r.lines(), RateLimited: true}); err != nil {
		return err
	}
	if s.ports, err = ports.Reserve(); err != nil {
		return err
	}
	for _, name := range places().Sides {
		in, err := scuted.Install(ctx, s.bed.Side(name), programs)
		if err != nil {
			return err
		}
		one, err := s.newSide(in)
		if err != nil {
			return err
		}
		s.sides = append(s.sides, one)
	}
	return nil
}

func (s *stage) newSide(in *scuted.Installation) (*side, error) {
	scheme, err := stack.NewScheme()
	if err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config := in.Side.Config()
	config.Timeout = 10 * time.Second
	one := &side{Installation: in, server: make(chan struct{}, 1)}
	if one.admin, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	options := scuted.DaemonOptions{}
	if options.LogDir, err = in.NewLogDir(); err != nil {
		return nil, err
	}
	for _, address := range []*string{&options.Listen, &options.Health, &options.Metrics} {
		port, err := s.ports.One()
		if err != nil {
			return nil, err
		}
		*address = fmt.Sprintf("127.0.0.1:%d", port)
	}
	one.metrics = options.Metrics
	one.keeper = &keeper{in: in, options: options}
	return one, nil
}

// populate creates clusters and policies, and what moves and runs need.
func (s *stage) populate(ctx context.Context) error {
	for _, one := range s.sides {
		for _, o := range s.given() {
			if err := client.IgnoreAlreadyExists(one.admin.Create(ctx, o)); err != nil {
				return fmt.Errorf("preparing %s: %w", one.Side.Name(), err)
			}
		}
		for _, other := range s.sides {
			if other == one {
				continue
			}
			if err := one.PutTarget(ctx, roam, other.Installation); err != nil {
				return err
			}
		}
	}
	for _, c := range clusters() {
		if _, err := s.sides[0].Side.CreateCluster(ctx, c); err != nil {
			return err
		}
	}
	for _, c := range clusters() {
		if err := s.sides[0].Side.WaitAvailable(ctx, c.Namespace, c.Name); err != nil {
			return err
		}
	}
	return nil
}

// given returns the objects that are created on both sides.
func (s *stage) given() []client.Object {
	var objects []client.Object
	for _, name := range []string{fleet, roam, runsNamespace} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	meta := metav1.ObjectMeta{Namespace: runsNamespace, Name: account}
	return append(objects, policy(fleet), policy(roam), limits(),
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch", "update", "delete"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: runsNamespace, Name: account}},
		})
}

// policy selects all machines of a namespace, with timeouts of seconds, and limits that a soak does not reach.
func policy(namespace string) *v1alpha1.RepairPolicy {
	short := func(d time.Duration) *v1alpha1.Duration { return &v1alpha1.Duration{Duration: d} }
	return &v1alpha1.RepairPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: policyName},
		Spec: v1alpha1.RepairPolicySpec{
			Workers: true, MaxAttempts: 20,
			Checks: v1alpha1.RepairChecks{
				NodeStartup: short(5 * time.Minute),
				UnhealthyNodeConditions: []v1alpha1.UnhealthyCondition{
					{Type: "Ready", Status: "False", Timeout: v1alpha1.Duration{Duration: 2 * time.Second}},
					{Type: "Ready", Status: "Unknown", Timeout: v1alpha1.Duration{Duration: 2 * time.Second}},
				},
			},
			Limits:   v1alpha1.RepairPolicyLimits{PerWindow: 10000, Cooldown: short(time.Second), MassFailure: v1alpha1.PolicyMassFailure{Cooldown: short(2 * time.Second)}},
			Timeouts: v1alpha1.RepairTimeouts{ScaleUp: short(time.Minute), Ready: short(2 * time.Minute), Removal: short(3 * time.Minute)},
		},
	}
}

// limits returns fleet limits that a soak does not reach.
func limits() *v1alpha1.RepairLimits {
	short := &v1alpha1.Duration{Duration: 2 * time.Second}
	return &v1alpha1.RepairLimits{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.RepairLimitsName},
		Spec: v1alpha1.RepairLimitsSpec{
			AtOnce: 1000, PerWindow: 10000, MassFailure: v1alpha1.FleetMassFailure{Cooldown: short},
			FailureDomains: v1alpha1.FailureDomainLimits{AtOnce: 1000, MassFailure: v1alpha1.FailureDomainMassFailure{Cooldown: short}},
		},
	}
}

// close stops everything, also after a failure or Ctrl-C.
func (s *stage) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	for _, one := range s.sides {
		errs = append(errs, one.keeper.stop(ctx))
	}
	if s.ports != nil {
		errs = append(errs, s.ports.Release())
	}
	if s.bed != nil {
		errs = append(errs, s.bed.Stop())
	}
	return errors.Join(errs...)
}
