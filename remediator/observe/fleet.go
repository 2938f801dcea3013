package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
)

const (
	countTTL = 5 * time.Second
	// countingShare makes the time between two counts at least 20 times as long as a count took,
	// however many objects tenants create.
	countingShare = 20
)

// census stores the last count of machines. Only one caller counts at a time. Other callers use the
// last count while it does.
type census struct {
	counting sync.Mutex
	last     atomic.Pointer[count]
}

// count is immutable.
type count struct {
	label    string
	until    time.Time // expiry
	machines remediator.NamespaceCounts
	watched  map[string]int // by policy (namespace/name)
}

func (l *observation) fleet(ctx context.Context) error {
	fleet, label, err := l.observer.fleet(ctx)
	if err != nil {
		return err
	}
	l.facts.Fleet = fleet
	if l.clusterObject != nil {
		l.facts.Cluster.Region = l.clusterObject.Labels[label]
	}
	return nil
}

// Fleet returns the limits of the fleet, and the number of machines that policies select.
func (o *Observer) Fleet(ctx context.Context) (remediator.Fleet, error) {
	fleet, _, err := o.fleet(ctx)
	return fleet, err
}

func (o *Observer) fleet(ctx context.Context) (fleet remediator.Fleet, label string, err error) {
	limits, err := o.limits(ctx)
	if err != nil {
		return fleet, "", err
	}
	label = cmp.Or(limits.Spec.FailureDomains.RegionLabel, v1alpha1.DefaultRegionLabel)
	fleet.Limits = Limits(limits)
	counted, err := o.machines(ctx, label)
	if err != nil {
		return fleet, "", err
	}
	fleet.Selected, fleet.Watched = counted.machines, counted.watched
	return fleet, label, nil
}

func (o *Observer) limits(ctx context.Context) (*v1alpha1.RepairLimits, error) {
	limits := &v1alpha1.RepairLimits{}
	if o.Limits == nil {
		return limits, nil
	}
	err := o.Limits.Get(ctx, client.ObjectKey{Name: v1alpha1.RepairLimitsName}, limits)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading the RepairLimits: %w", err)
	}
	return limits, nil
}

// Limits returns the limits of a RepairLimits, with the defaults of its schema, which also apply if
// no RepairLimits exists. For a RepairLimits that cannot be read, it returns only the reason,
// because a default must not replace a value that the object may contain.
func Limits(l *v1alpha1.RepairLimits) remediator.FleetLimits {
	if wrong := l.Unreadable.Spec; wrong != nil {
		return remediator.FleetLimits{Unreadable: wrong.Field + ": " + wrong.Problem}
	}
	s := &l.Spec
	mass, domain := s.MassFailure, s.FailureDomains.MassFailure
	return remediator.FleetLimits{
		Paused: slices.Clone(s.PauseRequests),
		AtOnce: int(cmp.Or(s.AtOnce, 10)), PerWindow: int(cmp.Or(s.PerWindow, 60)), Window: positive(s.Window, time.Hour),
		Mass: remediator.MassFailure{
			Percent: int(cmp.Or(mass.Percent, 20)), Floor: int(cmp.Or(mass.Floor, 10)), Cooldown: mass.Cooldown.Or(10 * time.Minute),
		},
		DomainAtOnce: int(cmp.Or(s.FailureDomains.AtOnce, 5)),
		DomainMass: remediator.MassFailure{
			Percent: int(cmp.Or(domain.Percent, 50)), Floor: int(cmp.Or(domain.Floor, 4)), Cooldown: domain.Cooldown.Or(10 * time.Minute),
		},
	}
}

func (o *Observer) machines(ctx context.Context, label string) (*count, error) {
	c := &o.census
	last := c.last.Load()
	known := last != nil && last.label == label
	switch {
	case known && o.now().Before(last.until):
		return last, nil
	case known && !c.counting.TryLock():
		return last, nil
	case !known:
		c.counting.Lock()
	}
	defer c.counting.Unlock()
	if now := c.last.Load(); now != last && now.label == label {
		return now, nil // another caller counted meanwhile
	}
	began := o.now()
	counted, err := countMachines(ctx, o.cache, label)
	if err != nil {
		return nil, err
	}
	ended := o.now()
	counted.until = ended.Add(max(countTTL, countingShare*ended.Sub(began)))
	c.last.Store(counted)
	return counted, nil
}

// selected contains the policies that select the machines of a cluster. A nil policy means that
// none does.
type selected struct {
	controlPlane, workers *v1alpha1.RepairPolicy
	region                string
}

func countMachines(ctx context.Context, cache client.Reader, label string) (*count, error) {
	var policies v1alpha1.RepairPolicyList
	var clusters clusterv1.ClusterList
	var machines clusterv1.MachineList
	for _, list := range []client.ObjectList{&policies, &clusters, &machines} {
		if err := cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("counting the machines of the fleet: %w", err)
		}
	}
	inNamespace := make(map[string]scopes)
	for _, s := range scopesOf(policies.Items) {
		inNamespace[s.policy.Namespace] = append(inNamespace[s.policy.Namespace], s)
	}
	byCluster := make(map[types.NamespacedName]selected)
	for i := range clusters.Items {
		c := &clusters.Items[i]
		if of := inNamespace[c.Namespace]; len(of) > 0 {
			byCluster[client.ObjectKeyFromObject(c)] = selected{
				controlPlane: of.first(c.Labels, string(remediator.ControlPlane)),
				workers:      of.first(c.Labels, string(remediator.Deployment)), region: c.Labels[label],
			}
		}
	}
	counted := &count{label: label, machines: make(remediator.NamespaceCounts), watched: make(map[string]int)}
	for i := range machines.Items {
		m := &machines.Items[i]
		in := byCluster[types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.ClusterName}]
		by := in.workers
		if _, plane := m.Labels[clusterv1.MachineControlPlaneLabel]; plane {
			by = in.controlPlane
		}
		if by != nil {
			counted.machines.Add(remediator.PolicyGroup{Namespace: m.Namespace, DryRun: by.Spec.DryRun}, remediator.Domain(in.region, domainOf(m)), 1)
			counted.watched[m.Namespace+"/"+by.Name]++
		}
	}
	return counted, nil
}
