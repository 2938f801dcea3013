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

// Objects are what a fleet is made of.
type Objects struct {
	Clusters     []clusterv1.Cluster
	Machines     []clusterv1.Machine
	Owners       []ownerkind.Owner
	Remediations []v1alpha1.SurgeRemediation
	Policies     []v1alpha1.RepairPolicy
	// Limits are those of the fleet, nil where they may not be read.
	Limits *v1alpha1.RepairLimits
	// Served says that the cluster has scute's kinds, and that they may be read.
	Served bool
	// Logged is what the log has of each machine, and of each owner, that it knows, by its UID; nil when the log was not read.
	Logged map[types.UID]*remediator.State
	// Now is when they were read.
	Now time.Time
	// Withheld are the kinds that may not be read.
	Withheld []string
}

// Read lists them in a namespace, "" for all. What is not served, or may not be read, is left out.
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

// lister lists what may be missing.
type lister struct {
	ctx       context.Context //nolint:containedctx // it lives for one Read
	cluster   *connect.Cluster
	namespace string
	objects   *Objects
	err       error
}

// list says whether the kind is served and may be read.
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
		r.objects.Withheld = append(r.objects.Withheld, what)
		return false
	default:
		r.err = fmt.Errorf("listing %s: %w", what, r.cluster.Explain(err))
		return false
	}
}

// limits of the fleet, which hold without an object too. They are of the whole cluster: not everybody may read them, or needs to.
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
