package act

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
)

// RequestFinalizer keeps a request until its remediation has ended.
const RequestFinalizer = "scute.dev/remediation"

// createRequest creates the Machine's SurgeRemediation with scute's finalizer. If a
// SurgeRemediation already exists, usually because a MachineHealthCheck created it, createRequest
// adds the finalizer to it.
func (d *execution) createRequest(ctx context.Context) error {
	const gone = "the machine is gone, or is being deleted"
	m, err := d.machine(ctx)
	if err != nil {
		return d.whenGone(err, true, gone)
	}
	if !m.DeletionTimestamp.IsZero() {
		return preconditionFailed(gone)
	}
	err = d.addFinalizer(ctx)
	if !apierrors.IsNotFound(err) {
		return err
	}
	request := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, Finalizers: []string{RequestFinalizer},
		Labels:          map[string]string{clusterv1.ClusterNameLabel: m.Spec.ClusterName},
		OwnerReferences: []metav1.OwnerReference{machineReference(m)},
	}}
	if err := d.copyOrders(request); err != nil {
		return err
	}
	err = d.create(ctx, request)
	if apierrors.IsAlreadyExists(err) { // a MachineHealthCheck was faster, or the response to a first attempt was lost
		return d.addFinalizer(ctx)
	}
	return err
}

func (d *execution) addFinalizer(ctx context.Context) error {
	return change(ctx, d.Executor, d.machineKey(), &v1alpha1.SurgeRemediation{}, d.patch, func(r *v1alpha1.SurgeRemediation) error {
		switch {
		case !d.belongsToMachine(r):
			return preconditionFailed("the SurgeRemediation %s belongs to another machine of that name", r.Name)
		case !r.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(r, RequestFinalizer):
			return preconditionFailed("the SurgeRemediation %s is being deleted", r.Name)
		}
		controllerutil.AddFinalizer(r, RequestFinalizer)
		return d.copyOrders(r)
	})
}

// copyOrders copies an operator's abort and hold from an earlier request to r. It copies them only
// once, so that an order that an operator later removes is not restored. It does not overwrite a
// hold of r.
func (d *execution) copyOrders(r *v1alpha1.SurgeRemediation) error {
	if _, done := r.Annotations[object.CarriedAnnotation]; done || d.Value == "" {
		return nil
	}
	said, err := d.requestedSpec()
	if err != nil {
		return err
	}
	r.Spec.Abort = r.Spec.Abort || said.Abort
	if r.Spec.Hold == nil {
		r.Spec.Hold = said.Hold
	}
	metav1.SetMetaDataAnnotation(&r.ObjectMeta, object.CarriedAnnotation, "true")
	return nil
}

// requestedSpec decodes the action's Value, a spec with the orders that operators wrote on a
// request.
func (d *execution) requestedSpec() (requestedSpec v1alpha1.SurgeRemediationSpec, err error) {
	if d.Value == "" {
		return requestedSpec, nil
	}
	if err := json.Unmarshal([]byte(d.Value), &requestedSpec); err != nil {
		return requestedSpec, fmt.Errorf("decoding the request: %w", err)
	}
	return requestedSpec, nil
}

// deleteRequest deletes the Machine's request and removes its finalizer. It fails while the
// Machine's condition HealthCheckSucceeded is False, because a MachineHealthCheck resets that
// condition only if the request exists. It also fails if an operator has changed the request's hold
// or abort since the log recorded them.
func (d *execution) deleteRequest(ctx context.Context) error {
	r := &v1alpha1.SurgeRemediation{}
	if err := d.get(ctx, d.machineKey(), r); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !d.belongsToMachine(r) {
		return nil
	}
	if r.DeletionTimestamp.IsZero() {
		m, err := d.machine(ctx)
		if err := d.whenGone(err, false, ""); err != nil {
			return err
		}
		if m != nil && isUnhealthy(m) {
			return preconditionFailed("the machine is unhealthy again, by its condition %s", clusterv1.MachineHealthCheckSucceededCondition)
		}
		switch said, err := d.requestedSpec(); {
		case err != nil:
			return err
		case ordersRemoved(said, r):
			return preconditionFailed("an operator has removed the hold or abort from SurgeRemediation %s", r.Name)
		case d.Value == "" && hasOrders(r):
			return preconditionFailed("an operator has set a hold or abort in SurgeRemediation %s", r.Name)
		}
		seen := client.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion}
		err = call(ctx, "deleting SurgeRemediation "+r.Name, func(ctx context.Context) error {
			return d.Client.Delete(ctx, r, seen)
		})
		if err := client.IgnoreNotFound(err); err != nil {
			return err
		}
	}
	err := change(ctx, d.Executor, d.machineKey(), &v1alpha1.SurgeRemediation{}, d.patch, func(now *v1alpha1.SurgeRemediation) error {
		if now.UID == r.UID {
			controllerutil.RemoveFinalizer(now, RequestFinalizer)
		}
		return nil
	})
	return client.IgnoreNotFound(err)
}

// ordersRemoved reports whether a request no longer has the abort or hold that it had when it was
// observed. A request that cannot be read still has its hold, because it was observed as held.
func ordersRemoved(seen v1alpha1.SurgeRemediationSpec, r *v1alpha1.SurgeRemediation) bool {
	return seen.Abort && !r.Spec.Abort || seen.Hold != nil && r.Spec.Hold == nil && r.Unreadable.Spec == nil
}

// hasOrders reports whether a request has an abort or a hold, or cannot be read, so that it may have a hold.
func hasOrders(r *v1alpha1.SurgeRemediation) bool {
	return r.Spec.Abort || r.Spec.Hold != nil || r.Unreadable.Spec != nil
}

// belongsToMachine reports whether an object has no owner, or is owned by the action's Machine and
// not by an earlier or later Machine with the same name.
func (d *execution) belongsToMachine(o client.Object) bool {
	return len(o.GetOwnerReferences()) == 0 || ownedBy(o, d.Machine.UID)
}

func machineReference(m *clusterv1.Machine) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: m.Name, UID: m.UID}
}

// labelValue returns a machine's name, shortened to the maximum length of a label value.
func labelValue(machine string) string {
	const most = 63
	if len(machine) <= most {
		return machine
	}
	h := fnv.New32a()
	h.Write([]byte(machine))
	return fmt.Sprintf("%s-%08x", machine[:most-9], h.Sum32())
}
