package remediation

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/remediator/act"
	"scute.dev/remediator/observe"
)

const reconcileTimeout = time.Minute

type records interface {
	// Status returns the status of a machine's remediation, or false if the log contains none.
	Status(owner string, machine types.UID) (v1alpha1.SurgeRemediationStatus, bool)
	// History lists up to most ended remediations of one policy, newest first.
	History(namespace, policy string, most int) []v1alpha1.PastRemediation
	Etcd(owner string) []v1alpha1.EtcdProblem
}

// requestReconciler writes the status of each SurgeRemediation, from what the log contains about
// its machine. It keeps the SurgeRemediation while the remediation is in progress.
type requestReconciler struct {
	cache    client.Reader // for kinds that are watched anyway
	live     client.Client
	recorder events.EventRecorder
	view     records
}

func (r *requestReconciler) setup(mgr ctrl.Manager, watched cache.Cache, feed *EventSource) error {
	all := func(ctx context.Context, o client.Object) []reconcile.Request {
		return requestsIn(ctx, r.cache, &v1alpha1.SurgeRemediationList{}, o.GetNamespace())
	}
	return ctrl.NewControllerManagedBy(mgr).Named("surgeremediation").
		WithOptions(controllerOptions(2)).
		WatchesRawSource(resource.ResourceSource(&feed.requests)).
		WatchesRawSource(watch(watched, &v1alpha1.SurgeRemediation{}, nil, itself)).
		// Deleting the Machine releases its request. A request created before its Machine waits for it.
		WatchesRawSource(watch(watched, &clusterv1.Machine{}, withoutUpdates[*clusterv1.Machine](), itself)).
		// Whether a policy selects a machine depends on all policies and on the labels of its Cluster.
		WatchesRawSource(watch(watched, &v1alpha1.RepairPolicy{}, nil, all)).
		WatchesRawSource(watch(watched, &clusterv1.Cluster{}, nil, all)).
		Complete(r)
}

// Reconcile holds or releases a request and writes its status.
func (r *requestReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()
	err := r.reconcile(ctx, req)
	if apierrors.IsConflict(err) { // the remediator wrote it too; the cache lags
		return ctrl.Result{RequeueAfter: minRetryDelay}, nil
	}
	return ctrl.Result{}, err
}

func (r *requestReconciler) reconcile(ctx context.Context, req ctrl.Request) error {
	request := &v1alpha1.SurgeRemediation{}
	if err := r.cache.Get(ctx, req.NamespacedName, request); err != nil {
		return client.IgnoreNotFound(err)
	}
	machine, err := r.machine(ctx, request)
	if err != nil {
		return err
	}
	if machine == nil {
		return r.withoutMachine(ctx, request)
	}
	owner, owned, err := OwnerOf(ctx, r.cache, machine)
	if err != nil {
		return err
	}
	policy, err := policyOf(ctx, r.cache, machine.Namespace, machine.Spec.ClusterName, owner.Kind)
	if err != nil {
		return err
	}
	var status v1alpha1.SurgeRemediationStatus
	known := false
	if owned {
		status, known = r.view.Status(owner.ID(), machine.UID)
	}
	switch {
	case owned && !known && hasOutcome(request):
		status, known = request.Status, true
	case known && (endedBefore(&status, request) || status.Phase == v1alpha1.RemediationUnselected): // whether it is selected is determined below
		status, known = v1alpha1.SurgeRemediationStatus{}, false
	}
	open := known && status.FinishedAt == nil
	switch {
	// A MachineHealthCheck reports a machine as healthy only while its request exists.
	case open, policy != nil && request.DeletionTimestamp.IsZero():
		// The API server rejects a new finalizer during deletion. The request is created again if necessary.
		if request.DeletionTimestamp.IsZero() {
			if _, err := resource.AddFinalizer(ctx, r.live, request, act.RequestFinalizer); err != nil {
				return err
			}
		}
	default: // the client that deletes it must not be blocked
		if err := resource.RemoveFinalizer(ctx, r.live, request, act.RequestFinalizer); err != nil || !request.DeletionTimestamp.IsZero() {
			return err
		}
	}
	return r.publish(ctx, request, machine, requestStatus(status, known, policy, machine))
}

// withoutMachine removes the finalizer of a request whose Machine does not exist. A request that
// the Machine owns is deleted with the Machine. A request that a user created remains, and its
// status explains why it has no effect, unless the status is that of a remediation in the log.
func (r *requestReconciler) withoutMachine(ctx context.Context, request *v1alpha1.SurgeRemediation) error {
	if err := resource.RemoveFinalizer(ctx, r.live, request, act.RequestFinalizer); err != nil || !request.DeletionTimestamp.IsZero() || observe.MachineUID(request) != "" || request.Status.RemediationID != "" {
		return err
	}
	before := request.DeepCopy()
	request.Status = noMachineStatus(request)
	_, err := resource.Publish(ctx, r.live, r.recorder, before, request, &request.Status.Conditions)
	return err
}

// hasOutcome reports whether the status of a request contains the end of a remediation. Such a
// status stays valid after the view has forgotten the remediation, because the view would contain a
// later remediation.
func hasOutcome(request *v1alpha1.SurgeRemediation) bool {
	return request.Status.FinishedAt != nil && request.Status.RemediationID != ""
}

// endedBefore reports whether a remediation ended before the request was created, so that the
// request is about a later failure. Creation times are in whole seconds.
func endedBefore(status *v1alpha1.SurgeRemediationStatus, request *v1alpha1.SurgeRemediation) bool {
	return status.FinishedAt != nil && !request.CreationTimestamp.Time.Before(status.FinishedAt.Truncate(time.Second))
}

func requestStatus(status v1alpha1.SurgeRemediationStatus, known bool, policy *v1alpha1.RepairPolicy, m *clusterv1.Machine) v1alpha1.SurgeRemediationStatus {
	switch {
	case known:
	case metav1.GetControllerOfNoCopy(m) == nil: // its controller determines whether a policy selects it
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

// machine returns the Machine of a request. It returns nil if the Machine is gone, or if another
// Machine owns the request.
func (r *requestReconciler) machine(ctx context.Context, request *v1alpha1.SurgeRemediation) (*clusterv1.Machine, error) {
	m := &clusterv1.Machine{}
	err := r.cache.Get(ctx, client.ObjectKeyFromObject(request), m)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Machine %s: %w", request.Name, err)
	}
	if owner := observe.MachineUID(request); owner != "" && owner != m.UID {
		return nil, nil // a later Machine with this name
	}
	return m, nil
}

func policyOf(ctx context.Context, cached client.Reader, namespace, cluster, ownerKind string) (*v1alpha1.RepairPolicy, error) {
	c := &clusterv1.Cluster{}
	err := cached.Get(ctx, client.ObjectKey{Namespace: namespace, Name: cluster}, c)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Cluster %s: %w", cluster, err)
	}
	var policies v1alpha1.RepairPolicyList
	if err := cached.List(ctx, &policies, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading the RepairPolicies: %w", err)
	}
	return observe.Select(policies.Items, c.Labels, ownerKind), nil
}

func (r *requestReconciler) publish(ctx context.Context, request *v1alpha1.SurgeRemediation, m *clusterv1.Machine, status v1alpha1.SurgeRemediationStatus) error {
	before := request.DeepCopy()
	status.ObservedGeneration = request.Generation
	status.Message, status.Next = resource.TruncateMessage(status.Message), resource.TruncateMessage(status.Next)
	status.Conditions = requestConditions(before.Status.Conditions, &status, request.Generation)
	request.Status = status
	if written, err := resource.Publish(ctx, r.live, r.recorder, before, request, &request.Status.Conditions); !written {
		return err
	}
	if note := newNote(&before.Status, &status); note != "" {
		r.recorder.Eventf(m, request, corev1.EventTypeWarning, "Remediation"+string(status.Phase), "Remediate", "%s", note)
	}
	return nil
}

func isFinal(p v1alpha1.RemediationPhase) bool {
	return slices.Contains([]v1alpha1.RemediationPhase{
		v1alpha1.RemediationSucceeded, v1alpha1.RemediationRecovered, v1alpha1.RemediationCancelled, v1alpha1.RemediationFailed, v1alpha1.RemediationUnselected,
	}, p)
}

// requestConditions returns the conditions of a request: Reconciling while the remediation
// continues by itself, Stalled if it needs a user, and Ready if the machine is healthy again or was
// replaced.
func requestConditions(old []metav1.Condition, s *v1alpha1.SurgeRemediationStatus, generation int64) []metav1.Condition {
	ready := s.Phase == v1alpha1.RemediationSucceeded || s.Phase == v1alpha1.RemediationRecovered
	stalled := s.Phase == v1alpha1.RemediationFrozen || s.Phase == v1alpha1.RemediationFailed || s.Phase == v1alpha1.RemediationUnselected ||
		s.Phase == v1alpha1.RemediationCancelled && s.Next != ""
	message := s.Message
	if stalled && s.Next != "" {
		message += "; " + s.Next
	}
	return resource.Kstatus(old, generation, string(s.Phase),
		resource.Value{True: ready, Message: s.Message},
		resource.Value{True: !isFinal(s.Phase) && !stalled, Message: s.Message},
		resource.Value{True: stalled, Message: message})
}

func noMachineStatus(request *v1alpha1.SurgeRemediation) v1alpha1.SurgeRemediationStatus {
	s := v1alpha1.SurgeRemediationStatus{
		ObservedGeneration: request.Generation,
		Message:            fmt.Sprintf("Machine %s does not exist in namespace %s; scute does nothing", request.Name, request.Namespace),
		Next:               "delete this SurgeRemediation; a SurgeRemediation must have the name of its Machine",
	}
	s.Conditions = resource.Kstatus(request.Status.Conditions, request.Generation, "MachineNotFound",
		resource.Value{Message: s.Message}, resource.Value{}, resource.Value{True: true, Message: s.Message + "; " + s.Next})
	return s
}

// newNote returns the note of an event for a machine that no policy selects or whose policy cannot
// be read, "" for no event. EventReporter reports what is in the log. newNote compares with the
// published status, so a restarted daemon reports nothing twice.
func newNote(before, after *v1alpha1.SurgeRemediationStatus) string {
	if before.Phase == after.Phase || after.RemediationID != "" || after.Phase != v1alpha1.RemediationUnselected && after.Phase != v1alpha1.RemediationFrozen {
		return ""
	}
	return resource.TruncateNote(after.Message + "; next: " + after.Next)
}
