package act

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// owner is one kind of owner of machines, as it was read.
type owner interface {
	client.Object
	// wanted is how many machines its spec asks for.
	wanted() int32
	// want asks for another number.
	want(replicas int32)
	// relaxes says that the kind knows the annotation remediation-in-progress.
	relaxes() bool
	// outdates says that the value of a trigger, on a machine, has the owner replace the machine; err that the trigger does
	// nothing with this owner.
	outdates(lever remediator.RolloutTrigger, value string, now time.Time) (bool, error)
	// above is the kind and name of what manages the owner, and overrules what is asked of it; "" without.
	above() string
}

// blankOwner is an object of the owner's kind, to be read into.
func blankOwner(kind string) (client.Object, error) {
	switch remediator.OwnerKind(kind) {
	case remediator.ControlPlane:
		return &controlplanev1.KubeadmControlPlane{}, nil
	case remediator.Deployment:
		return &clusterv1.MachineDeployment{}, nil
	case remediator.Set:
		return &clusterv1.MachineSet{}, nil
	default:
		return nil, fmt.Errorf("a %s owns the machine, and scute does not know how to ask one for a replacement: replace the machine by hand", kind)
	}
}

// asOwner is the owner that was read into an object of blankOwner.
func asOwner(o client.Object) (owner, error) {
	switch o := o.(type) {
	case *controlplanev1.KubeadmControlPlane:
		return controlPlane{o}, nil
	case *clusterv1.MachineDeployment:
		return deployment{o}, nil
	case *clusterv1.MachineSet:
		return set{o}, nil
	default:
		return nil, fmt.Errorf("a %T owns no machines", o)
	}
}

type controlPlane struct {
	*controlplanev1.KubeadmControlPlane
}

func (o controlPlane) wanted() int32       { return replicas(o.Spec.Replicas) }
func (o controlPlane) want(replicas int32) { o.Spec.Replicas = &replicas }
func (o controlPlane) relaxes() bool       { return true }
func (o controlPlane) above() string       { return "" }

func (o controlPlane) outdates(trigger remediator.RolloutTrigger, value string, now time.Time) (bool, error) {
	if trigger == remediator.TriggerClonedFrom {
		return value != "" && value != o.Spec.MachineTemplate.Spec.InfrastructureRef.Name, nil
	}
	if value == "" {
		return false, nil
	}
	expires, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return false, fmt.Errorf("the certificates' expiry must be a time as in RFC 3339: %w", err)
	}
	days := int(o.Spec.Rollout.Before.CertificatesExpiryDays)
	if days == 0 && !expires.After(now) {
		return false, foreign("the control plane's spec.rollout.before.certificatesExpiryDays is not set, so it replaces no machine for its certificates")
	}
	return days > 0 && expires.Before(now.AddDate(0, 0, days)), nil
}

type deployment struct{ *clusterv1.MachineDeployment }

func (o deployment) wanted() int32       { return replicas(o.Spec.Replicas) }
func (o deployment) want(replicas int32) { o.Spec.Replicas = &replicas }
func (o deployment) relaxes() bool       { return false }
func (o deployment) above() string       { return "" }

func (o deployment) outdates(trigger remediator.RolloutTrigger, _ string, _ time.Time) (bool, error) {
	return false, fmt.Errorf("a MachineDeployment replaces no single machine for its %s", trigger)
}

type set struct{ *clusterv1.MachineSet }

func (o set) wanted() int32       { return replicas(o.Spec.Replicas) }
func (o set) want(replicas int32) { o.Spec.Replicas = &replicas }
func (o set) relaxes() bool       { return false }

func (o set) outdates(trigger remediator.RolloutTrigger, _ string, _ time.Time) (bool, error) {
	return false, fmt.Errorf("a MachineSet replaces no machine for its %s", trigger)
}

func (o set) above() string {
	if by := metav1.GetControllerOf(o); by != nil {
		return by.Kind + " " + by.Name
	}
	return ""
}

// replicas that are not set are 1, by the API's default.
func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func (d *execution) ownerKey() types.NamespacedName {
	return types.NamespacedName{Namespace: d.facts.Owner.Namespace, Name: d.facts.Owner.Name}
}

// owner reads the owner; nil when it is gone, or another one has its name.
func (d *execution) owner(ctx context.Context) (owner, error) {
	o, err := blankOwner(d.facts.Owner.Kind)
	if err != nil {
		return nil, err
	}
	err = d.get(ctx, d.ownerKey(), o)
	if apierrors.IsNotFound(err) || err == nil && o.GetUID() != d.facts.Owner.UID {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return asOwner(o)
}

// onOwner changes the owner. If it is gone, there is nothing to undo, and no owner to request anything from.
func (d *execution) onOwner(ctx context.Context, asking bool, amend func(owner) error) error {
	kind, err := blankOwner(d.facts.Owner.Kind)
	if err != nil {
		return err
	}
	err = change(ctx, d.Executor, d.ownerKey(), kind, func(read client.Object) error {
		if read.GetUID() != d.facts.Owner.UID {
			return errGone
		}
		o, err := asOwner(read)
		if err != nil {
			return err
		}
		return amend(o)
	})
	return d.whenGone(err, asking, d.ownerGone())
}

func (d *execution) ownerGone() string {
	return fmt.Sprintf("the %s %s is gone, or another one has its name", d.facts.Owner.Kind, d.facts.Owner.Name)
}

// touch sets or takes off the annotation whose only purpose is that it changes.
func (d *execution) touch(ctx context.Context) error {
	return d.onOwner(ctx, d.Value != "", func(o owner) error {
		annotate(o, object.TouchAnnotation, d.Value)
		return nil
	})
}

// relaxed is what KubeadmControlPlane keeps in its annotation remediation-in-progress.
type relaxed struct {
	Machine    string      `json:"machine"`
	Timestamp  metav1.Time `json:"timestamp"`
	RetryCount int         `json:"retryCount"`
}

// setRelaxed writes the control plane's own bookkeeping, so it is careful: what the controller could not read would stop
// it altogether, and what names another machine is not ours.
func (d *execution) setRelaxed(ctx context.Context) error {
	if d.Value != "" {
		var value relaxed
		if err := json.Unmarshal([]byte(d.Value), &value); err != nil {
			return fmt.Errorf("the value %q is none that the control plane could read: %w", d.Value, err)
		}
		if value.Machine != d.Machine.Name || value.Timestamp.IsZero() {
			return fmt.Errorf("the value %q names another machine, or no time", d.Value)
		}
	}
	return d.onOwner(ctx, d.Value != "", func(o owner) error {
		if !o.relaxes() {
			return fmt.Errorf("a %s has no preflight to be relaxed", d.facts.Owner.Kind)
		}
		have, there := o.GetAnnotations()[controlplanev1.RemediationInProgressAnnotation]
		var found relaxed
		ours := json.Unmarshal([]byte(have), &found) == nil && found.Machine == d.Machine.Name
		switch {
		case there && ours && d.Value == "":
			annotate(o, controlplanev1.RemediationInProgressAnnotation, "")
			return nil
		case there && ours, d.Value == "":
			return nil
		case there:
			return foreign("the control plane's annotation %s is there already, for another machine: %s", controlplanev1.RemediationInProgressAnnotation, have)
		}
		if err := d.allowed(ctx, o); err != nil {
			return err
		}
		annotate(o, controlplanev1.RemediationInProgressAnnotation, d.Value)
		return nil
	})
}

// annotate sets an annotation; "" takes it off.
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
