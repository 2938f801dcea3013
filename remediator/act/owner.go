package act

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

// kind returns the owner's kind, or an error if scute cannot request a replacement from it.
func (d *execution) kind() (ownerkind.Kind, error) {
	kind, known := ownerkind.Named(d.facts.Owner.Kind)
	if !known {
		return kind, fmt.Errorf("a %s owns the machine, and scute does not know how to ask one for a replacement: replace the machine by hand", d.facts.Owner.Kind)
	}
	return kind, nil
}

func (d *execution) ownerKey() types.NamespacedName {
	return types.NamespacedName{Namespace: d.facts.Owner.Namespace, Name: d.facts.Owner.Name}
}

// owner reads the owner. It returns nil if the owner is gone, or another object has its name.
func (d *execution) owner(ctx context.Context) (ownerkind.Owner, error) {
	kind, err := d.kind()
	if err != nil {
		return nil, err
	}
	o := kind.New()
	err = d.get(ctx, d.ownerKey(), o)
	if apierrors.IsNotFound(err) || err == nil && o.GetUID() != d.facts.Owner.UID {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	owner, _ := ownerkind.As(o)
	return owner, nil
}

// updateOwner changes the owner. If the owner is gone, there is nothing to undo, and nothing to request from it.
func (d *execution) updateOwner(ctx context.Context, asking bool, amend func(ownerkind.Owner) error) error {
	kind, err := d.kind()
	if err != nil {
		return err
	}
	err = change(ctx, d.Executor, d.ownerKey(), kind.New(), d.patch, func(read client.Object) error {
		if read.GetUID() != d.facts.Owner.UID {
			return errGone
		}
		o, _ := ownerkind.As(read)
		return amend(o)
	})
	return d.whenGone(err, asking, d.ownerGone())
}

func (d *execution) ownerGone() string {
	return fmt.Sprintf("the %s %s is gone, or another one has its name", d.facts.Owner.Kind, d.facts.Owner.Name)
}

// touch sets or removes an annotation that only serves to trigger the owner's controller.
func (d *execution) touch(ctx context.Context) error {
	return d.updateOwner(ctx, d.Value != "", func(o ownerkind.Owner) error {
		annotate(o, object.TouchAnnotation, d.Value)
		return nil
	})
}

// setRelaxed writes the control plane's own bookkeeping. It keeps a value for another machine.
func (d *execution) setRelaxed(ctx context.Context) error {
	return d.updateOwner(ctx, d.Value != "", func(o ownerkind.Owner) error {
		if !o.RelaxesPreflight() {
			return fmt.Errorf("a %s has no preflight checks to relax", d.facts.Owner.Kind)
		}
		have, there := o.GetAnnotations()[controlplanev1.RemediationInProgressAnnotation]
		switch ours := there && remediator.RelaxedFor(have) == d.Machine.Name; {
		case ours && d.Value == "":
			annotate(o, controlplanev1.RemediationInProgressAnnotation, "")
			return nil
		case ours, d.Value == "":
			return nil
		case there:
			return preconditionFailed("the control plane already has the annotation %s for another machine: %s", controlplanev1.RemediationInProgressAnnotation, have)
		}
		if err := d.checkAllowed(ctx, o); err != nil {
			return err
		}
		annotate(o, controlplanev1.RemediationInProgressAnnotation, d.Value)
		return nil
	})
}

// annotate sets an annotation, or removes it if the value is "".
func annotate(o metav1.Object, key, value string) {
	annotations := o.GetAnnotations()
	if value == "" {
		delete(annotations, key)
	} else {
		if annotations == nil {
			annotations = make(map[string]string, 1)
		}
		annotations[key] = value
	}
	o.SetAnnotations(annotations)
}
