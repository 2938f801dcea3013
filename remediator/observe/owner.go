package observe

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

// OwnersFor returns the owners whose facts an object affects, for controllers that map its events.
//
//	Machine                                     its owner
//	an owner that scute knows                   itself
//	MachineSet                                  the MachineDeployment that controls it, else itself
//	Cluster                                     the owners of all its machines
//	SurgeRemediation                            the owner of the Machine of that name
//	RepairPolicy                                the owners of all machines of its namespace, also of machines that it no longer selects
//	RepairLimits                                the owners of all machines
//
// Objects may be read from a watch of Cache, and may be deleted. The owner of a Machine whose MachineSet is gone cannot be determined, and is not
// needed because its MachineDeployment is gone too.
func (o *Observer) OwnersFor(ctx context.Context, of client.Object) ([]remediator.Owner, error) {
	one := func(owner remediator.Owner, ok bool, err error) ([]remediator.Owner, error) {
		if err != nil || !ok {
			return nil, err
		}
		return []remediator.Owner{owner}, nil
	}
	switch of := of.(type) {
	case *clusterv1.Machine:
		return one(o.OwnerOf(ctx, of))
	case *clusterv1.Cluster:
		return o.owners(ctx, client.InNamespace(of.Namespace), client.MatchingFields{byCluster: of.Name})
	case *v1alpha1.SurgeRemediation:
		machine := &clusterv1.Machine{}
		err := o.cache.Get(ctx, client.ObjectKeyFromObject(of), machine)
		if absent(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("finding the machine of %s/%s: %w", of.Namespace, of.Name, err)
		}
		return one(o.OwnerOf(ctx, machine))
	case *v1alpha1.RepairPolicy:
		return o.owners(ctx, client.InNamespace(of.Namespace))
	case *v1alpha1.RepairLimits:
		return o.owners(ctx)
	default:
		if o, ok := ownerkind.As(of); ok {
			owner := o.Owner()
			return one(owner, owner.Cluster != "", nil)
		}
		return nil, fmt.Errorf("finding the owners for a %T: it refers to none", of)
	}
}

func (o *Observer) owners(ctx context.Context, of ...client.ListOption) ([]remediator.Owner, error) {
	list := &clusterv1.MachineList{}
	if err := o.cache.List(ctx, list, append(of, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("finding the owners of machines: %w", err)
	}
	seen := make(map[remediator.Owner]bool)
	var owners []remediator.Owner
	for i := range list.Items {
		owner, ok, err := o.OwnerOf(ctx, &list.Items[i])
		if err != nil {
			return nil, err
		}
		if ok && !seen[owner] {
			seen[owner] = true
			owners = append(owners, owner)
		}
	}
	return owners, nil
}

// OwnerOf returns the owner that replaces a machine. It returns false if nothing controls the machine, or if its MachineSet is gone.
func (o *Observer) OwnerOf(ctx context.Context, m *clusterv1.Machine) (remediator.Owner, bool, error) {
	by := metav1.GetControllerOfNoCopy(m)
	if by == nil {
		return remediator.Owner{}, false, nil
	}
	owner := remediator.Owner{Kind: ownerkind.Of(by), Namespace: m.Namespace, Name: by.Name, UID: by.UID, Cluster: m.Spec.ClusterName}
	if owner.Kind != string(remediator.Set) {
		return owner, true, nil
	}
	set := &clusterv1.MachineSet{}
	err := o.cache.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: by.Name}, set, client.UnsafeDisableDeepCopy)
	if absent(err) || err == nil && set.UID != by.UID {
		return remediator.Owner{}, false, nil
	}
	if err != nil {
		return remediator.Owner{}, false, fmt.Errorf("finding the MachineSet of machine %s/%s: %w", m.Namespace, m.Name, err)
	}
	above, _ := ownerkind.As(set)
	return above.Owner(), true, nil
}
