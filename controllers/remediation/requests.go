package remediation

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/remediator"
	"scute.dev/remediator/act"
	"scute.dev/remediator/observe"
)

// Requests writes the log's view of its machine into each SurgeRemediation, and keeps the object while a remediation is in progress.
type Requests struct {
	// Cache reads kinds that are watched anyway, Live writes.
	Cache    client.Reader
	Live     client.Client
	Recorder events.EventRecorder
	View     View
	// OwnerOf returns the owner that replaces a machine; false if there is none.
	OwnerOf func(ctx context.Context, m *clusterv1.Machine) (remediator.Owner, bool, error)
}

// Reconcile holds or releases a request, and writes its status.
func (r *Requests) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()
	err := r.reconcile(ctx, req)
	if apierrors.IsConflict(err) { // the remediator wrote it too, and the cache will have it soon
		return ctrl.Result{RequeueAfter: minRetryDelay}, nil
	}
	return ctrl.Result{}, err
}

func (r *Requests) reconcile(ctx context.Context, req ctrl.Request) error {
	request := &v1alpha1.SurgeRemediation{}
	if err := r.Cache.Get(ctx, req.NamespacedName, request); err != nil {
		return client.IgnoreNotFound(err)
	}
	machine, err := r.machine(ctx, request)
	if err != nil {
		return err
	}
	if machine == nil {
		return r.withoutMachine(ctx, request)
	}
	owner, owned, err := r.OwnerOf(ctx, machine)
	if err != nil {
		return err
	}
	policy, err := r.policy(ctx, machine, owner.Kind)
	if err != nil {
		return err
	}
	var status v1alpha1.SurgeRemediationStatus
	known := false
	if owned {
		status, known = r.View.Status(owner.ID(), machine.UID)
	}
	switch {
	case owned && !known && hasOutcome(request):
		status, known = request.Status, true
	case known && (endedBefore(&status, request) || status.Phase == v1alpha1.RemediationUnselected): // whether it is selected is determined here
		status, known = v1alpha1.SurgeRemediationStatus{}, false
	}
	open := known && status.FinishedAt == nil
	switch {
	// A MachineHealthCheck reports a machine as healthy again only while its request exists.
	case open, policy != nil && request.DeletionTimestamp.IsZero():
		if err := r.addFinalizer(ctx, request); err != nil {
			return err
		}
	default: // do not wait: the client that deletes it must not be blocked
		if err := resource.RemoveFinalizer(ctx, r.Live, request, act.RequestFinalizer); err != nil || !request.DeletionTimestamp.IsZero() {
			return err
		}
	}
	return r.publish(ctx, request, machine, requestStatus(status, known, policy, machine))
}

// withoutMachine releases a request. A request that a Machine owns is deleted with the Machine. One that a user created remains, and its status
// explains why it has no effect. The status of a remediation in the log is not overwritten.
func (r *Requests) withoutMachine(ctx context.Context, request *v1alpha1.SurgeRemediation) error {
	if err := resource.RemoveFinalizer(ctx, r.Live, request, act.RequestFinalizer); err != nil || !request.DeletionTimestamp.IsZero() || machineUID(request) != "" || request.Status.RemediationID != "" {
		return err
	}
	before := request.DeepCopy()
	request.Status = noMachineStatus(request)
	_, err := resource.Publish(ctx, r.Live, r.Recorder, before, request, &request.Status.Conditions)
	return err
}

// hasOutcome reports whether the status of a request has the end of a remediation. It remains valid when the view forgets the remediation, because the view
// would know a later one.
func hasOutcome(request *v1alpha1.SurgeRemediation) bool {
	return request.Status.FinishedAt != nil && request.Status.RemediationID != ""
}

// endedBefore reports whether the remediation in the log ended before this request was created, so that it concerns an earlier failure. Times of objects
// are in whole seconds.
func endedBefore(status *v1alpha1.SurgeRemediationStatus, request *v1alpha1.SurgeRemediation) bool {
	return status.FinishedAt != nil && !request.CreationTimestamp.Time.Before(status.FinishedAt.Truncate(time.Second))
}

// requestStatus returns the status of a request: the log's view, or why the log has none.
func requestStatus(status v1alpha1.SurgeRemediationStatus, known bool, policy *v1alpha1.RepairPolicy, m *clusterv1.Machine) v1alpha1.SurgeRemediationStatus {
	switch {
	case known:
	case metav1.GetControllerOfNoCopy(m) == nil: // whether a policy selects it depends on its controller
		status.Phase, status.Cluster = v1alpha1.RemediationFrozen, m.Spec.ClusterName
		status.Message = "no owner controls this Machine, so nothing would replace it; scute does nothing"
		status.Next = "find out why it has no owner (a control plane or MachineSet with its labels would adopt it), or delete it"
	case policy == nil:
		status.Phase, status.Cluster = v1alpha1.RemediationUnselected, m.Spec.ClusterName
		status.Message = "no RepairPolicy of the namespace selects this machine; scute does nothing"
		status.Next = fmt.Sprintf("to opt in, create a RepairPolicy in namespace %s whose selector matches the labels of Cluster %s", m.Namespace, m.Spec.ClusterName)
		if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; !ok {
			status.Next += ", with spec.workers set to true"
		}
	case observe.Unreadable(policy) != "":
		status.Phase, status.Cluster, status.Policy = v1alpha1.RemediationFrozen, m.Spec.ClusterName, policy.Name
		status.Message = fmt.Sprintf("RepairPolicy %s cannot be read: %s; nothing starts", policy.Name, observe.Unreadable(policy))
		status.Next = "correct RepairPolicy " + policy.Name
	default:
		status.Phase, status.Cluster, status.Policy = v1alpha1.RemediationMarked, m.Spec.ClusterName, policy.Name
		status.Message = "requested; nothing was decided yet"
	}
	return status
}

// machine returns the Machine of a request, nil if it is gone. If a Machine owns the request, it must be that Machine.
func (r *Requests) machine(ctx context.Context, request *v1alpha1.SurgeRemediation) (*clusterv1.Machine, error) {
	m := &clusterv1.Machine{}
	err := r.Cache.Get(ctx, client.ObjectKeyFromObject(request), m)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Machine %s: %w", request.Name, err)
	}
	if owner := machineUID(request); owner != "" && owner != m.UID {
		return nil, nil // a later Machine with this name
	}
	return m, nil
}

// machineUID returns the UID of the Machine that owns a request, "" for a request that a user created.
func machineUID(request *v1alpha1.SurgeRemediation) types.UID {
	for _, ref := range request.OwnerReferences {
		if ref.Kind == "Machine" {
			return ref.UID
		}
	}
	return ""
}

// policy returns the policy that selects a machine, nil if there is none.
func (r *Requests) policy(ctx context.Context, m *clusterv1.Machine, ownerKind string) (*v1alpha1.RepairPolicy, error) {
	c := &clusterv1.Cluster{}
	err := r.Cache.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}, c)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Cluster %s: %w", m.Spec.ClusterName, err)
	}
	var policies v1alpha1.RepairPolicyList
	if err := r.Cache.List(ctx, &policies, client.InNamespace(m.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading the RepairPolicies: %w", err)
	}
	return observe.Select(policies.Items, c.Labels, ownerKind), nil
}

// addFinalizer adds the finalizer. A request that is being deleted accepts none: it is deleted, and created again if necessary.
func (r *Requests) addFinalizer(ctx context.Context, request *v1alpha1.SurgeRemediation) error {
	if !request.DeletionTimestamp.IsZero() {
		return nil
	}
	_, err := resource.AddFinalizer(ctx, r.Live, request, act.RequestFinalizer)
	return err
}

func (r *Requests) publish(ctx context.Context, request *v1alpha1.SurgeRemediation, m *clusterv1.Machine, status v1alpha1.SurgeRemediationStatus) error {
	before := request.DeepCopy()
	status.ObservedGeneration = request.Generation
	status.Message, status.Next = resource.TruncateMessage(status.Message), resource.TruncateMessage(status.Next)
	status.Conditions = requestConditions(before.Status.Conditions, &status, request.Generation)
	request.Status = status
	if written, err := resource.Publish(ctx, r.Live, r.Recorder, before, request, &request.Status.Conditions); !written {
		return err
	}
	if n, ok := newEvent(&before.Status, &status); ok {
		r.Recorder.Eventf(m, request, n.kind, n.reason, "Remediate", "%s", n.note)
	}
	return nil
}

// isFinal reports whether a phase is final.
func isFinal(p v1alpha1.RemediationPhase) bool {
	return slices.Contains([]v1alpha1.RemediationPhase{
		v1alpha1.RemediationSucceeded, v1alpha1.RemediationRecovered, v1alpha1.RemediationCancelled, v1alpha1.RemediationFailed, v1alpha1.RemediationUnselected,
	}, p)
}
