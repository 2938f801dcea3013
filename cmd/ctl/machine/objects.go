package machine

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

// Objects are the objects that describe a fleet.
type Objects struct {
	Clusters     []clusterv1.Cluster
	Machines     []clusterv1.Machine
	Owners       []ownerkind.Owner
	Remediations []v1alpha1.SurgeRemediation
	Policies     []v1alpha1.RepairPolicy
	// Limits is the RepairLimits object, nil if it may not be read.
	Limits *v1alpha1.RepairLimits
	// Served means that the cluster serves scute's kinds, and that they may be read.
	Served bool
	// States maps the UIDs of machines and owners to their state in the log; nil if the log was not read.
	States map[types.UID]*remediator.State
	// Now is the time of reading.
	Now time.Time
	// Forbidden lists the kinds that may not be read.
	Forbidden []string
}

// Read lists the objects in a namespace, "" for all namespaces. It omits kinds of scute and of owners that are not served or may not be read.
func Read(ctx context.Context, c *connect.Cluster, namespace string) (*Objects, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	o := &Objects{Now: time.Now()}
	var clusters clusterv1.ClusterList
	var machines clusterv1.MachineList
	for what, list := range map[string]client.ObjectList{"clusters": &clusters, "machines": &machines} {
		err := c.Client.List(ctx, list, client.InNamespace(namespace))
		if meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("the cluster at %s does not serve Cluster API's %s of %s: choose another --context, or install Cluster API 1.11 or newer there (clusterctl init)",
				c.Config.Host, what, clusterv1.GroupVersion)
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", what, c.Explain(err))
		}
	}
	o.Clusters, o.Machines = clusters.Items, machines.Items
	r := lister{ctx: ctx, cluster: c, namespace: namespace, objects: o}
	for _, kind := range ownerkind.All() {
		list := kind.NewList()
		r.list(kind.Resource, list)
		o.Owners = append(o.Owners, ownerkind.Items(list)...)
	}
	var remediations v1alpha1.SurgeRemediationList
	var policies v1alpha1.RepairPolicyList
	o.Served = r.list("surgeremediations", &remediations) && r.list("repairpolicies", &policies)
	o.Remediations, o.Policies = remediations.Items, policies.Items
	if o.Served {
		r.limits()
	}
	return o, r.err
}

// lister lists kinds that may be missing.
type lister struct {
	ctx       context.Context //nolint:containedctx // a lister exists only for one Read
	cluster   *connect.Cluster
	namespace string
	objects   *Objects
	err       error
}

// list reports whether the kind is served and may be read.
func (r *lister) list(what string, list client.ObjectList) bool {
	if r.err != nil {
		return false
	}
	err := r.cluster.Client.List(r.ctx, list, client.InNamespace(r.namespace))
	switch {
	case err == nil:
		return true
	case meta.IsNoMatchError(err):
		return false
	case apierrors.IsForbidden(err):
		r.objects.Forbidden = append(r.objects.Forbidden, what)
		return false
	default:
		r.err = fmt.Errorf("listing %s: %w", what, r.cluster.Explain(err))
		return false
	}
}

// limits reads the limits of the fleet, whose defaults apply without an object. The object is cluster-scoped, so not every user may read it.
func (r *lister) limits() {
	limits := &v1alpha1.RepairLimits{}
	err := r.cluster.Client.Get(r.ctx, client.ObjectKey{Name: v1alpha1.RepairLimitsName}, limits)
	switch {
	case err == nil || apierrors.IsNotFound(err):
		r.objects.Limits = limits
	case !meta.IsNoMatchError(err) && !apierrors.IsForbidden(err) && r.err == nil:
		r.err = fmt.Errorf("reading the RepairLimits: %w", r.cluster.Explain(err))
	}
}
