package remediation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/remediator"
	"scute.dev/remediator/observe"
	"scute.dev/remediator/ownerkind"
	"scute.dev/remediator/runner"
	"scute.dev/view"
)

type policyReconciler struct {
	cache    client.Reader // for kinds that are watched anyway
	live     client.Client
	recorder events.EventRecorder
	view     records
	// totals counts only machines whose owners have been reconciled.
	totals func(namespace, policy string) runner.Totals
}

func (r *policyReconciler) setup(mgr ctrl.Manager, watched cache.Cache, feed *EventSource, kinds []ownerkind.Kind) error {
	all := func(ctx context.Context, namespace string) []reconcile.Request {
		return requestsIn(ctx, r.cache, &v1alpha1.RepairPolicyList{}, namespace)
	}
	namespace := func(_ context.Context, o client.Object) []reconcile.Request {
		feed.namespaces.Add(o.GetNamespace())
		return nil
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("repairpolicy").
		WithOptions(controllerOptions(1)).
		WatchesRawSource(resource.ResourceSource(&feed.policies)).
		WatchesRawSource(resource.Source(&feed.owners, func(ctx context.Context, o remediator.Owner) []reconcile.Request {
			p, err := policyOf(ctx, r.cache, o.Namespace, o.Cluster, o.Kind)
			if p == nil || err != nil { // any policy may have selected it before
				return all(ctx, o.Namespace)
			}
			return itself(ctx, p)
		})).
		WatchesRawSource(resource.Source(&feed.namespaces, all)).
		WatchesRawSource(watch(watched, &v1alpha1.RepairPolicy{}, nil, func(ctx context.Context, p client.Object) []reconcile.Request {
			return append(namespace(ctx, p), itself(ctx, p)...) // including a deleted one
		})).
		WatchesRawSource(watch(watched, &v1alpha1.SurgeRemediationTemplate{}, nil, namespace)).
		WatchesRawSource(watch(watched, &clusterv1.MachineHealthCheck{}, nil, namespace)).
		WatchesRawSource(watch(watched, &clusterv1.Cluster{}, nil, namespace)).
		WatchesRawSource(watch(watched, &clusterv1.Machine{}, withoutUpdates[*clusterv1.Machine](), namespace)) // they are only counted
	for _, kind := range kinds {
		if kind.Name.IsControlPlane() {
			b = b.WatchesRawSource(watch(watched, kind.New(), nil, namespace))
		}
	}
	return b.Complete(r)
}

// Reconcile creates, corrects and deletes the objects that a policy owns, and writes its status.
func (r *policyReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()
	p := &v1alpha1.RepairPolicy{}
	err := r.cache.Get(ctx, req.NamespacedName, p)
	if apierrors.IsNotFound(err) || err == nil && !p.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.removeOwned(ctx, req)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if wrong := problems(p); len(wrong) > 0 {
		return r.publish(ctx, p, &scope{}, wrong) // keep its objects until it can be read again
	}
	s, err := readScope(ctx, r.cache, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	conflicts, failed := r.reconcileOwned(ctx, p, s)
	result, err := r.publish(ctx, p, s, conflicts)
	if err = errors.Join(failed, err); err != nil {
		return ctrl.Result{}, err
	}
	return result, nil
}

func (r *policyReconciler) reconcileOwned(ctx context.Context, p *v1alpha1.RepairPolicy, s *scope) (conflicts []string, err error) {
	if err := r.template(ctx, p); err != nil {
		return nil, err
	}
	checks, err := r.checks(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	var templates v1alpha1.SurgeRemediationTemplateList
	if err := r.cache.List(ctx, &templates, client.InNamespace(p.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading the %ss: %w", observe.TemplateKind, err)
	}
	conflicts = append(templateProblems(p, s, checks, templates.Items), competingChecks(p, s, checks)...)
	byName := make(map[string]*clusterv1.MachineHealthCheck, len(checks))
	for i := range checks {
		byName[checks[i].Name] = &checks[i]
	}
	wanted := p.Spec.HealthCheck == nil || *p.Spec.HealthCheck
	kept := make(map[string]bool)
	var errs []error
	for i := range s.planes {
		pl := &s.planes[i]
		name := healthCheckName(pl.owner.GetName())
		existing := byName[name]
		if pl.isPausedOrDeleting() {
			kept[name] = true
			continue
		}
		if !wanted || p.Spec.DryRun {
			continue
		}
		if existing != nil && existing.Labels[policyLabel] == "" {
			conflicts = append(conflicts, fmt.Sprintf("cluster %s: MachineHealthCheck %s does not belong to this policy: rename or delete it, or set spec.healthCheck to false", pl.cluster.Name, name))
			continue
		}
		other, wired := conflictingCheck(checks, pl.owner, pl.cluster.Name, pl.machines)
		if other != nil {
			conflicts = append(conflicts, fmt.Sprintf("cluster %s: MachineHealthCheck %s selects the same control plane, and would remediate it without this policy: delete it, or set its templateRef to %s %s",
				pl.cluster.Name, other.Name, observe.TemplateKind, templateName(p.Name)))
			continue
		}
		if wired {
			continue
		}
		kept[name] = true
		errs = append(errs, r.check(ctx, p, pl, existing))
	}
	for i := range checks {
		if c := &checks[i]; c.Labels[policyLabel] == p.Name && !kept[c.Name] {
			errs = append(errs, r.remove(ctx, c))
		}
	}
	return conflicts, errors.Join(errs...)
}

func (r *policyReconciler) checks(ctx context.Context, namespace string) ([]clusterv1.MachineHealthCheck, error) {
	var list clusterv1.MachineHealthCheckList
	if err := r.cache.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading the MachineHealthChecks: %w", err)
	}
	return list.Items, nil
}

// template creates or adopts the policy's SurgeRemediationTemplate. It keeps the spec, in which an
// operator may have set a hold.
func (r *policyReconciler) template(ctx context.Context, p *v1alpha1.RepairPolicy) error {
	t := &v1alpha1.SurgeRemediationTemplate{}
	t.Namespace, t.Name = p.Namespace, templateName(p.Name)
	switch err := r.cache.Get(ctx, client.ObjectKeyFromObject(t), t); {
	case apierrors.IsNotFound(err):
		return r.apply(ctx, p, nil, t)
	case err != nil:
		return fmt.Errorf("reading %s %s: %w", observe.TemplateKind, t.Name, err)
	default:
		return r.apply(ctx, p, t, t.DeepCopy())
	}
}

func (r *policyReconciler) check(ctx context.Context, p *v1alpha1.RepairPolicy, pl *plane, existing *clusterv1.MachineHealthCheck) error {
	spec := healthCheckSpec(p, pl.cluster.Name, maxUnhealthy(pl.size(), r.provisioning(pl)))
	if existing != nil {
		c := existing.DeepCopy()
		c.Spec = spec
		return r.apply(ctx, p, existing, c)
	}
	c := &clusterv1.MachineHealthCheck{Spec: spec}
	c.Namespace, c.Name = p.Namespace, healthCheckName(pl.owner.GetName())
	c.Labels = map[string]string{clusterv1.ClusterNameLabel: pl.cluster.Name}
	// The Cluster owns it too. Cluster API's controller sets this a moment later, but a move in
	// between would refuse a MachineHealthCheck that only a policy owns.
	if err := controllerutil.SetOwnerReference(pl.cluster, c, r.live.Scheme()); err != nil {
		return err
	}
	return r.apply(ctx, p, nil, c)
}

func (r *policyReconciler) provisioning(pl *plane) bool {
	owner := pl.owner.Owner()
	for i := range pl.machines {
		status, ok := r.view.Status(owner.ID(), pl.machines[i].UID)
		if ok && (status.Phase == v1alpha1.RemediationSurging || status.Phase == v1alpha1.RemediationReplacing) {
			return true
		}
	}
	return false
}

// apply makes the policy the controller of an object, and creates or patches the object. The owner
// reference does not block the deletion of the policy, because that would need another permission,
// and nothing waits for the object's deletion.
func (r *policyReconciler) apply(ctx context.Context, p *v1alpha1.RepairPolicy, before, o client.Object) error {
	labels := map[string]string{}
	maps.Copy(labels, o.GetLabels())
	labels[policyLabel] = p.Name
	o.SetLabels(labels)
	adopted := !metav1.IsControlledBy(o, p)
	if adopted { // its controller was another policy, or a deleted one of this name
		o.SetOwnerReferences(slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(ref metav1.OwnerReference) bool { return ptr.Deref(ref.Controller, false) }))
		if err := controllerutil.SetControllerReference(p, o, r.live.Scheme(), controllerutil.WithBlockOwnerDeletion(false)); err != nil {
			return fmt.Errorf("setting the owner of %s: %w", o.GetName(), err)
		}
	}
	var err error
	switch {
	case before == nil: // if it exists, the cache lags and the watch will requeue the policy
		err = client.IgnoreAlreadyExists(r.live.Create(ctx, o))
	case equality.Semantic.DeepEqual(before, o):
	case adopted: // all writers share one list of owner references
		err = client.IgnoreNotFound(r.live.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
	default:
		err = client.IgnoreNotFound(r.live.Patch(ctx, o, client.MergeFrom(before)))
	}
	if err != nil {
		return fmt.Errorf("writing %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// removeOwned deletes the objects that a deleted policy owned. The garbage collector would delete
// them too, if it runs.
func (r *policyReconciler) removeOwned(ctx context.Context, req ctrl.Request) error {
	checks, err := r.checks(ctx, req.Namespace)
	if err != nil {
		return err
	}
	var errs []error
	for i := range checks {
		if checks[i].Labels[policyLabel] == req.Name {
			errs = append(errs, r.remove(ctx, &checks[i]))
		}
	}
	t := &v1alpha1.SurgeRemediationTemplate{}
	err = r.cache.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: templateName(req.Name)}, t)
	if err == nil && t.Labels[policyLabel] == req.Name {
		err = r.remove(ctx, t)
	}
	return errors.Join(append(errs, client.IgnoreNotFound(err))...)
}

// remove deletes an object by UID, so that a later object with the same name is kept.
func (r *policyReconciler) remove(ctx context.Context, o client.Object) error {
	uid := o.GetUID()
	if !o.GetDeletionTimestamp().IsZero() {
		return nil
	}
	err := r.live.Delete(ctx, o, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// publish writes the status of a policy. wrong contains problems that only a user can fix. publish
// requeues the policy for the end of a mass failure's cooldown, and for the time at which perWindow
// allows another start, because no event reports these times.
func (r *policyReconciler) publish(ctx context.Context, p *v1alpha1.RepairPolicy, s *scope, wrong []string) (ctrl.Result, error) {
	totals := r.totals(p.Namespace, p.Name)
	now, limits := time.Now(), observe.Policy(p).Limits
	var again time.Duration
	var calm time.Time
	if over := totals.MassFailureEnded.Add(limits.MassFailure.Cooldown); !totals.MassFailureEnded.IsZero() && over.After(now) {
		calm, again = over, over.Sub(now)
	}
	opens := remediator.NextStart(totals.Started, limits.PerWindow, limits.Window, now)
	if left := opens.Sub(now); left > 0 && (again == 0 || left < again) {
		again = left
	}
	after := p.DeepCopy()
	after.Status = policyStatus(p, s, totals, wrong, calm, opens)
	after.Status.History, after.Status.Etcd = r.history(p), r.etcd(s)
	if _, err := resource.Publish(ctx, r.live, r.recorder, p, after, &after.Status.Conditions); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// maxReasonLength bounds each text in the history of a policy.
const maxReasonLength = 512

func (r *policyReconciler) history(p *v1alpha1.RepairPolicy) []v1alpha1.PastRemediation {
	list := r.view.History(p.Namespace, p.Name, v1alpha1.MostPastRemediations)
	for i := range list {
		list[i].Reason, list[i].Message = view.Truncate(list[i].Reason, maxReasonLength), view.Truncate(list[i].Message, maxReasonLength)
	}
	return list
}

func (r *policyReconciler) etcd(s *scope) []v1alpha1.EtcdProblem {
	var alarms, others []v1alpha1.EtcdProblem
	for i := range s.planes {
		for _, e := range r.view.Etcd(s.planes[i].owner.Owner().ID()) {
			e.Message = view.Truncate(e.Message, maxReasonLength)
			if e.Problem.Alarm() {
				alarms = append(alarms, e)
			} else {
				others = append(others, e)
			}
		}
	}
	list := slices.Concat(alarms, others)
	return slices.Clip(list[:min(len(list), v1alpha1.MostEtcdProblems)])
}

// policyStatus returns the status of a policy. calm is when a mass failure's cooldown ends, or zero
// for none. opens is when perWindow allows another remediation, or zero if it does now.
func policyStatus(p *v1alpha1.RepairPolicy, s *scope, t runner.Totals, wrong []string, calm, opens time.Time) v1alpha1.RepairPolicyStatus {
	reason, message := policySummary(p, s, t, wrong, calm, opens)
	return v1alpha1.RepairPolicyStatus{
		ObservedGeneration: p.Generation, Clusters: len(s.clusters), Machines: s.machines,
		Unhealthy: t.Unhealthy, Active: t.Active, MassFailure: t.MassFailure || !calm.IsZero(), Message: resource.TruncateMessage(message),
		Conditions: resource.Kstatus(p.Status.Conditions, p.Generation, reason,
			resource.Value{True: len(wrong) == 0, Message: message},
			resource.Value{},
			resource.Value{True: len(wrong) > 0, Message: strings.Join(wrong, "; ")}),
	}
}

func policySummary(p *v1alpha1.RepairPolicy, s *scope, t runner.Totals, wrong []string, calm, opens time.Time) (reason, message string) {
	watches := fmt.Sprintf("%s of %s watched", view.Count(s.machines, "machine"), view.Count(len(s.clusters), "cluster"))
	if len(s.elsewhere) > 0 {
		watches += fmt.Sprintf("; %s also selected by an earlier policy, which applies: %s", view.Count(len(s.elsewhere), "cluster"), few(s.elsewhere))
	}
	usedUp := windowClause(opens)
	switch {
	case len(wrong) > 0 && len(s.clusters) == 0 && s.machines == 0:
		return "Refused", "refused: " + strings.Join(wrong, "; ")
	case len(wrong) > 0:
		return "Conflict", strings.Join(wrong, "; ") + "; " + watches
	case len(p.Spec.PauseRequests) > 0:
		return "Paused", "paused, nothing starts: " + strings.Join(p.Spec.PauseRequests, "; ") + "; " + watches
	case p.Spec.DryRun:
		return "DryRun", "dry run, decisions are only recorded; " + watches
	case t.MassFailure:
		return "MassFailure", fmt.Sprintf("a mass failure: nothing starts before it has ended; look for the common cause; %d in progress, %d unhealthy; %s", t.Active, t.Unhealthy, watches)
	case !calm.IsZero():
		return "MassFailure", fmt.Sprintf("a mass failure has ended: nothing starts before %s; %d in progress, %d unhealthy; %s", calm.UTC().Format(time.RFC3339), t.Active, t.Unhealthy, watches)
	case t.Active > 0:
		return "Remediating", fmt.Sprintf("%s in progress, %d unhealthy%s; %s", view.Count(t.Active, "remediation"), t.Unhealthy, usedUp, watches)
	case t.Unhealthy > 0:
		return "Unhealthy", fmt.Sprintf("%d unhealthy, none in progress%s; %s", t.Unhealthy, usedUp, watches)
	case len(s.clusters) == 0:
		return "Watching", "selects no cluster of the namespace"
	default:
		return "Watching", watches
	}
}
