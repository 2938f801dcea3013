package remediation

import (
	"cmp"
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
	// Limits is nil if the user may not read it.
	Limits *v1alpha1.RepairLimits
	// Served is true if the cluster serves scute's kinds and they may be read.
	Served bool
	// States maps the UIDs of machines and of their owners to the state of the owner in the log. It is
	// nil if the log was not read.
	States map[types.UID]*remediator.State
	Now    time.Time
	// Forbidden lists the kinds that the user may not read.
	Forbidden []string
}

// Read lists the objects of a namespace ("" for all). Kinds of scute and kinds of owners are
// omitted if the API server does not serve them or the user may not read them.
func Read(ctx context.Context, c *connect.Cluster, namespace string) (*Objects, error) {
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
	var failed error
	list := func(what string, list client.ObjectList) (served bool) {
		err := c.Client.List(ctx, list, client.InNamespace(namespace))
		switch {
		case err == nil:
			return true
		case apierrors.IsForbidden(err):
			o.Forbidden = append(o.Forbidden, what)
		case !meta.IsNoMatchError(err):
			failed = cmp.Or(failed, fmt.Errorf("listing %s: %w", what, c.Explain(err)))
		}
		return false
	}
	for _, kind := range ownerkind.All() {
		owners := kind.NewList()
		list(kind.Resource, owners)
		o.Owners = append(o.Owners, ownerkind.Items(owners)...)
	}
	var remediations v1alpha1.SurgeRemediationList
	var policies v1alpha1.RepairPolicyList
	o.Served = list("surgeremediations", &remediations) && list("repairpolicies", &policies)
	o.Remediations, o.Policies = remediations.Items, policies.Items
	if o.Served {
		limits := &v1alpha1.RepairLimits{}
		err := c.Client.Get(ctx, client.ObjectKey{Name: v1alpha1.RepairLimitsName}, limits)
		switch {
		case err == nil || apierrors.IsNotFound(err): // the defaults apply without an object
			o.Limits = limits
		case !meta.IsNoMatchError(err) && !apierrors.IsForbidden(err): // it is cluster-scoped, so not every user may read it
			failed = cmp.Or(failed, fmt.Errorf("reading the RepairLimits: %w", c.Explain(err)))
		}
	}
	return o, failed
}
