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
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

const (
	// countedFor is how long the machines of the fleet are not counted again: there are many, and they change slowly.
	countedFor = 5 * time.Second
	// countingShare bounds counting to a 20th of the time, however many clusters and policies tenants make.
	countingShare = 20
)

// census is how many machines there are. One look counts at a time; meanwhile the others take what was counted last.
type census struct {
	counting sync.Mutex
	last     atomic.Pointer[count]
}

// count is what was counted. It is not changed any more.
type count struct {
	label    string
	until    time.Time // it will do
	machines remediator.NamespaceCounts
	watched  map[string]int // by policy: namespace/name
}

// fleet fills the limits of the whole fleet, and how many machines they are about.
func (l *look) fleet(ctx context.Context) error {
	fleet, label, err := l.observer.fleet(ctx)
	if err != nil {
		return err
	}
	l.facts.Fleet = fleet
	if l.inside != nil {
		l.facts.Cluster.Region = l.inside.Labels[label]
	}
	return nil
}

// Fleet is what there is to limit: the limits, and the machines that policies select.
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

// limits are those that somebody made; empty without.
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

// Limits are those of a RepairLimits with its defaults in place, which are those of its schema: they hold without an
// object too. Of one that cannot be read it is why: no default replaces what it may say.
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
			Percent: int(cmp.Or(mass.Percent, 20)), Floor: int(cmp.Or(mass.Floor, 10)), Cooldown: duration(mass.Cooldown, 10*time.Minute),
		},
		DomainAtOnce: int(cmp.Or(s.FailureDomains.AtOnce, 5)),
		DomainMass: remediator.MassFailure{
			Percent: int(cmp.Or(domain.Percent, 50)), Floor: int(cmp.Or(domain.Floor, 4)), Cooldown: duration(domain.Cooldown, 10*time.Minute),
		},
	}
}

// machines counts those that policies select, by namespace and failure domain, and by policy.
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
		return now, nil // counted while this look waited
	}
	began := o.now()
	counted, err := countMachines(ctx, o.cache, label)
	if err != nil {
		return nil, err
	}
	ended := o.now()
	counted.until = ended.Add(max(countedFor, countingShare*ended.Sub(began)))
	c.last.Store(counted)
	return counted, nil
}

// selected is what policies select of a cluster, and where that is. Nil is nothing.
type selected struct {
	controlPlane, workers *scope
	region                string
}

// scopes are those of a namespace's policies, read once for all its clusters, by the names of the policies.
type scopes []scope

// first is the one that has the machines of a kind of owner, as Select says; nil without.
func (s scopes) first(cluster map[string]string, kind remediator.OwnerKind) *scope {
	var unknown *scope
	for i := range s {
		switch s[i].selects(cluster, string(kind)) {
		case object.True:
			return &s[i]
		case object.False:
		default:
			unknown = cmp.Or(unknown, &s[i])
		}
	}
	return unknown
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
	inNamespace := scopesOf(policies.Items)
	byCluster := make(map[types.NamespacedName]selected)
	for i := range clusters.Items {
		c := &clusters.Items[i]
		if of := inNamespace[c.Namespace]; len(of) > 0 {
			byCluster[client.ObjectKeyFromObject(c)] = selected{
				controlPlane: of.first(c.Labels, remediator.ControlPlane),
				workers:      of.first(c.Labels, remediator.Deployment), region: c.Labels[label],
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
			counted.machines.Add(remediator.PolicyGroup{Namespace: m.Namespace, DryRun: by.dryRun}, remediator.Domain(in.region, domainOf(m)), 1)
			counted.watched[m.Namespace+"/"+by.name]++
		}
	}
	return counted, nil
}

// scopesOf reads policies, by namespace and in the order of their names.
func scopesOf(policies []v1alpha1.RepairPolicy) map[string]scopes {
	inNamespace := make(map[string]scopes)
	for i := range policies {
		if p := &policies[i]; p.DeletionTimestamp == nil {
			inNamespace[p.Namespace] = append(inNamespace[p.Namespace], scopeOf(p))
		}
	}
	for _, of := range inNamespace {
		slices.SortFunc(of, func(a, b scope) int { return cmp.Compare(a.name, b.name) })
	}
	return inNamespace
}
