package act

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

// errGone means that the object that an action changes is gone, or a later object has its name.
var errGone = errors.New("gone")

// whenGone converts an error of reading an object. If the object is gone, it returns nil, because
// there is nothing to undo, or ErrPreconditionFailed if asking is true, because the action requests
// something. It returns all other errors unchanged.
func (d *execution) whenGone(err error, asking bool, why string) error {
	switch {
	case !errors.Is(err, errGone) && !apierrors.IsNotFound(err):
		return err
	case asking:
		return preconditionFailed("%s", why)
	default:
		return nil
	}
}

// checkAllowed returns an error if the Machine, its owner or its Cluster forbids a write that
// starts or advances a replacement. It reads all three again, except for atHand, the one that the
// caller has just read, or nil.
func (d *execution) checkAllowed(ctx context.Context, atHand client.Object) error {
	if err := d.checkMachine(ctx, atHand); err != nil {
		return err
	}
	if err := d.checkOwner(ctx, atHand); err != nil {
		return err
	}
	return d.checkCluster(ctx, atHand)
}

func (d *execution) checkMachine(ctx context.Context, atHand client.Object) error {
	m, ok := atHand.(*clusterv1.Machine)
	if !ok {
		var err error
		if m, err = d.machine(ctx); err != nil {
			return d.whenGone(err, true, machineGone)
		}
	}
	switch {
	case !m.DeletionTimestamp.IsZero():
		return preconditionFailed("the machine is being deleted already")
	case hasAnnotation(m, clusterv1.MachineSkipRemediationAnnotation):
		return preconditionFailed("the machine has the annotation %s: remove it to have the machine replaced", clusterv1.MachineSkipRemediationAnnotation)
	case hasAnnotation(m, clusterv1.PausedAnnotation):
		return preconditionFailed("the machine is paused (annotation %s)", clusterv1.PausedAnnotation)
	}
	return nil
}

func (d *execution) checkOwner(ctx context.Context, atHand client.Object) error {
	o, ok := atHand.(ownerkind.Owner)
	if !ok {
		var err error
		if o, err = d.owner(ctx); err != nil {
			return err
		}
	}
	kind := d.facts.Owner.Kind
	switch {
	case o == nil:
		return preconditionFailed("%s", d.ownerGone())
	case o.GetDeletionTimestamp() != nil:
		return preconditionFailed("the %s %s is being deleted", kind, d.facts.Owner.Name)
	case hasAnnotation(o, clusterv1.PausedAnnotation):
		return preconditionFailed("the %s %s is paused (annotation %s)", kind, d.facts.Owner.Name, clusterv1.PausedAnnotation)
	}
	var says remediator.OwnerFacts
	if o.Fill(&says, ownerkind.Children{}); says.Paused {
		return preconditionFailed("the %s %s is paused (spec.paused)", kind, d.facts.Owner.Name)
	}
	return nil
}

func (d *execution) checkCluster(ctx context.Context, atHand client.Object) error {
	c, ok := atHand.(*clusterv1.Cluster)
	if !ok {
		c = &clusterv1.Cluster{}
		err := d.get(ctx, d.clusterKey(), c)
		if apierrors.IsNotFound(err) {
			return preconditionFailed("the Cluster %s is gone", d.facts.Owner.Cluster)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case !c.DeletionTimestamp.IsZero():
		return preconditionFailed("the Cluster %s is being deleted", c.Name)
	case c.Spec.Paused != nil && *c.Spec.Paused:
		return preconditionFailed("the Cluster %s is paused (spec.paused)", c.Name)
	case hasAnnotation(c, clusterv1.PausedAnnotation):
		return preconditionFailed("the Cluster %s is paused (annotation %s)", c.Name, clusterv1.PausedAnnotation)
	}
	return nil
}

func (d *execution) clusterKey() types.NamespacedName {
	return types.NamespacedName{Namespace: d.facts.Owner.Namespace, Name: d.facts.Owner.Cluster}
}

func (d *execution) machineKey() types.NamespacedName {
	return types.NamespacedName{Namespace: d.facts.Owner.Namespace, Name: d.Machine.Name}
}

// machine reads the action's Machine. It returns errGone if the Machine is gone or a later Machine
// has its name.
func (d *execution) machine(ctx context.Context) (*clusterv1.Machine, error) {
	m := &clusterv1.Machine{}
	switch err := d.get(ctx, d.machineKey(), m); {
	case apierrors.IsNotFound(err) || err == nil && m.UID != d.Machine.UID:
		return nil, errGone
	case err != nil:
		return nil, fmt.Errorf("getting the machine: %w", err)
	default:
		return m, nil
	}
}

// hasAnnotation reports whether an object has an annotation, with any value, as Cluster API does
// for most annotations.
func hasAnnotation(o client.Object, annotation string) bool {
	_, there := o.GetAnnotations()[annotation]
	return there
}
