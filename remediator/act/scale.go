package act

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

// scale changes the replicas of the owner, in the Cluster's topology if that sets them. A change of
// the owner's own replicas would be reverted by the topology within a second, but only after the
// owner has acted on it.
func (d *execution) scale(ctx context.Context) error {
	if d.Where == remediator.AtTopology {
		return d.scaleTopology(ctx)
	}
	return d.scaleOwner(ctx)
}

func (d *execution) scaleOwner(ctx context.Context) error {
	return d.updateOwner(ctx, d.Replicas > d.Expect, func(o ownerkind.Owner) error {
		if by := o.ManagedBy(); by != "" {
			return fmt.Errorf("the %s %s is managed by %s: set the replicas there", d.facts.Owner.Kind, d.facts.Owner.Name, by)
		}
		if has := ptr.Deref(o.Replicas(), 1); has == d.Replicas {
			return nil
		} else if err := d.checkReplicas(has); err != nil {
			return err
		}
		if err := d.checkTopology(ctx, o); err != nil {
			return err
		}
		if err := d.checkScale(ctx, o); err != nil {
			return err
		}
		o.SetReplicas(d.Replicas)
		return nil
	})
}

func (d *execution) checkTopology(ctx context.Context, o ownerkind.Owner) error {
	if _, owned := o.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]; !owned {
		return nil
	}
	c := &clusterv1.Cluster{}
	if err := d.get(ctx, d.clusterKey(), c); err != nil {
		return fmt.Errorf("checking whether the Cluster's topology manages replicas: %w", err)
	}
	at, err := d.topologyOf(c, o)
	if err != nil {
		return err
	}
	if *at != nil {
		return preconditionFailed("the topology of Cluster %s manages the replicas of the %s: set them there", c.Name, d.facts.Owner.Kind)
	}
	return nil
}

func (d *execution) scaleTopology(ctx context.Context) error {
	up := d.Replicas > d.Expect
	o, err := d.owner(ctx)
	if err != nil {
		return err
	}
	if o == nil && (up || d.Entry == "" && !d.isControlPlane()) {
		return d.whenGone(errGone, up, d.ownerGone())
	}
	err = change(ctx, d.Executor, d.clusterKey(), &clusterv1.Cluster{}, d.patch, func(c *clusterv1.Cluster) error {
		at, err := d.topologyOf(c, o)
		if err != nil {
			return err
		}
		if *at == nil {
			return preconditionFailed("the topology of Cluster %s does not set the replicas of the %s", c.Name, d.facts.Owner.Kind)
		}
		if has := **at; has == d.Replicas {
			return nil
		} else if err := d.checkReplicas(has); err != nil {
			return err
		}
		if err := d.checkScale(ctx, c); err != nil {
			return err
		}
		*at = &d.Replicas
		return nil
	})
	return d.whenGone(err, up, "the Cluster is gone")
}

// checkScale returns an error if the replicas must not be changed now. Raising them requires
// everything that a replacement requires (checkAllowed). Lowering them requires that the decision
// took all machines of the owner into account.
func (d *execution) checkScale(ctx context.Context, atHand client.Object) error {
	if d.Replicas > d.Expect {
		return d.checkAllowed(ctx, atHand)
	}
	return d.checkAllKnown(ctx)
}

// checkAllKnown returns an error if the owner has a machine that the facts lack. The owner chooses
// the machine that it deletes, and could choose a healthy one.
func (d *execution) checkAllKnown(ctx context.Context) error {
	controllers := []types.UID{d.facts.Owner.UID}
	if kind, _ := d.kind(); kind.ThroughSets {
		sets, err := d.listControlled(ctx, "MachineSetList", controllers)
		if err != nil {
			return err
		}
		controllers = nil
		for i := range sets {
			controllers = append(controllers, sets[i].UID)
		}
	}
	machines, err := d.listControlled(ctx, "MachineList", controllers)
	if err != nil {
		return err
	}
	for i := range machines {
		known := func(m remediator.Machine) bool { return m.UID == machines[i].UID }
		if !slices.ContainsFunc(d.facts.Machines, known) {
			return preconditionFailed("machine %s was created after this decision", machines[i].Name)
		}
	}
	return nil
}

func (d *execution) listControlled(ctx context.Context, kind string, controllers []types.UID) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind))
	err := call(ctx, "listing the machines of the owner", func(ctx context.Context) error {
		return d.Client.List(ctx, list, client.InNamespace(d.facts.Owner.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: d.facts.Owner.Cluster})
	})
	return slices.DeleteFunc(list.Items, func(o metav1.PartialObjectMetadata) bool {
		by := metav1.GetControllerOfNoCopy(&o)
		return by == nil || !slices.Contains(controllers, by.UID)
	}), err
}

func (d *execution) checkReplicas(has int32) error {
	if has == d.Expect {
		return nil
	}
	return preconditionFailed("replicas of the %s are %d, neither the original %d nor the requested %d", d.Where, has, d.Expect, d.Replicas)
}

// topologyOf returns the field in the Cluster's topology that contains the owner's replicas. If o
// is nil, because the owner is gone, it uses the topology entry in the log.
func (d *execution) topologyOf(c *clusterv1.Cluster, o ownerkind.Owner) (**int32, error) {
	if !c.Spec.Topology.IsDefined() {
		return nil, preconditionFailed("the Cluster %s has no topology", c.Name)
	}
	if d.isControlPlane() && c.Spec.ControlPlaneRef.Name != d.facts.Owner.Name {
		return nil, preconditionFailed("the control plane of Cluster %s is %s", c.Name, c.Spec.ControlPlaneRef.Name)
	}
	kind, err := d.kind()
	if err != nil {
		return nil, err
	}
	entry := d.Entry
	if o != nil {
		entry = o.TopologyEntry()
	}
	if at := kind.TopologyReplicas(c, entry); at != nil {
		return at, nil
	}
	return nil, preconditionFailed("the topology of Cluster %s has no entry for %s", c.Name, d.facts.Owner.Name)
}

func (d *execution) isControlPlane() bool {
	return remediator.OwnerKind(d.facts.Owner.Kind).IsControlPlane()
}
