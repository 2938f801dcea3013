package act

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

const machineGone = "the machine is gone, or another one has its name"

// updateMachine calls amend to change the Machine and writes the changes with send: to the Machine
// or, with patchStatus, to its status.
func (d *execution) updateMachine(ctx context.Context, send patcher, asking bool, amend func(*clusterv1.Machine) error) error {
	err := change(ctx, d.Executor, d.machineKey(), &clusterv1.Machine{}, send, func(m *clusterv1.Machine) error {
		if m.UID != d.Machine.UID {
			return errGone
		}
		return amend(m)
	})
	return d.whenGone(err, asking, machineGone)
}

// annotating returns a performer that sets an annotation of the Machine to the action's Value, or
// removes it. If required is true, setting it fails if the Machine is gone.
func annotating(key string, required bool) performer {
	return func(d *execution, ctx context.Context) error {
		return d.updateMachine(ctx, d.patch, required && d.Value != "", func(m *clusterv1.Machine) error {
			annotate(m, key, d.Value)
			return nil
		})
	}
}

// setDelete sets or removes scute's delete annotation. It does not change an annotation that
// another client set to have the Machine deleted.
func (d *execution) setDelete(ctx context.Context) error {
	on := d.Value != ""
	return d.updateMachine(ctx, d.patch, on, func(m *clusterv1.Machine) error {
		have, there := m.Annotations[clusterv1.DeleteMachineAnnotation]
		switch {
		case !on && have == remediator.DeleteValue:
			annotate(m, clusterv1.DeleteMachineAnnotation, "")
			return nil
		case !on, there, !m.DeletionTimestamp.IsZero(): // no annotation is needed during a deletion
			return nil
		}
		if err := d.checkAllowed(ctx, m); err != nil {
			return err
		}
		annotate(m, clusterv1.DeleteMachineAnnotation, remediator.DeleteValue)
		return nil
	})
}

// skipping returns a performer that sets an annotation that lets the Machine's deletion continue
// without the drain of its Node, or the detachment of its volumes. Changing the Machine's timeouts
// would have no effect, because its owner resets them to those of its template, even during the
// deletion.
func skipping(annotation string) performer {
	return func(d *execution, ctx context.Context) error {
		return d.updateMachine(ctx, d.patch, false, func(m *clusterv1.Machine) error {
			switch {
			case hasAnnotation(m, annotation):
				return nil
			case m.DeletionTimestamp.IsZero():
				return preconditionFailed("the machine is not being deleted")
			case hasAnnotation(m, clusterv1.PausedAnnotation):
				return preconditionFailed("the machine is paused (annotation %s)", clusterv1.PausedAnnotation)
			}
			if err := d.checkCluster(ctx, nil); err != nil {
				return err
			}
			annotate(m, annotation, object.OwnGroup)
			return nil
		})
	}
}

func (d *execution) setCertificates(ctx context.Context) error {
	return d.updateMachine(ctx, d.patch, d.Value != "", func(m *clusterv1.Machine) error {
		return d.setTrigger(ctx, m, m, clusterv1.MachineCertificatesExpiryDateAnnotation, remediator.TriggerCertificates)
	})
}

// setClonedFrom sets the annotation of the infrastructure machine. It reads only metadata.
func (d *execution) setClonedFrom(ctx context.Context) error {
	m, err := d.machine(ctx)
	if err != nil {
		return d.whenGone(err, d.Value != "", machineGone)
	}
	infra, err := d.infrastructure(m)
	if err != nil {
		return err
	}
	err = change(ctx, d.Executor, types.NamespacedName{Namespace: m.Namespace, Name: infra.Name}, infra, d.patch, func(i *metav1.PartialObjectMetadata) error {
		if !ownedBy(i, m.UID) {
			return preconditionFailed("the %s %s does not belong to the machine", i.Kind, i.Name)
		}
		return d.setTrigger(ctx, m, i, clusterv1.TemplateClonedFromNameAnnotation, remediator.TriggerClonedFrom)
	})
	return d.whenGone(err, d.Value != "", "the machine's infrastructure machine is gone")
}

// infrastructure returns an object with the name and kind of the infrastructure machine, in the API
// server's preferred version. Any version would do, because annotations are the same in all
// versions.
func (d *execution) infrastructure(m *clusterv1.Machine) (*metav1.PartialObjectMetadata, error) {
	ref := m.Spec.InfrastructureRef
	mapping, err := d.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
	if err != nil {
		return nil, err
	}
	infra := &metav1.PartialObjectMetadata{}
	infra.SetGroupVersionKind(mapping.GroupVersionKind)
	infra.Name = ref.Name
	return infra, nil
}

func (d *execution) setTrigger(ctx context.Context, m *clusterv1.Machine, o client.Object, annotation string, trigger remediator.RolloutTrigger) error {
	have := o.GetAnnotations()[annotation]
	if have == d.Value {
		return nil
	}
	if err := d.checkTrigger(ctx, m, trigger, have); err != nil {
		return err
	}
	annotate(o, annotation, d.Value)
	return nil
}

// checkTrigger returns an error if a trigger must not be changed from have to the action's Value.
// Removing the trigger is always allowed, and so is a value that makes no difference to the owner.
// A value that makes an up-to-date machine outdated starts its replacement, and needs checkAllowed.
func (d *execution) checkTrigger(ctx context.Context, m *clusterv1.Machine, trigger remediator.RolloutTrigger, have string) error {
	if d.Value == "" {
		return nil
	}
	o, err := d.owner(ctx)
	if err != nil {
		return err
	}
	if o == nil {
		return preconditionFailed("%s", d.ownerGone())
	}
	now := time.Now()
	will, err := o.Outdates(trigger, d.Value, now)
	if errors.Is(err, ownerkind.ErrTriggerOff) {
		return preconditionFailed("%v", err)
	}
	if err != nil || !will {
		return err
	}
	if was, err := o.Outdates(trigger, have, now); err == nil && was {
		return nil
	}
	return d.checkAllowed(ctx, m)
}

func ownedBy(o client.Object, machine types.UID) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == machine })
}
