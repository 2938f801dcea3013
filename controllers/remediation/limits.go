package remediation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/remediator"
	"scute.dev/view"
)

const (
	// countInterval is the interval at which the counts in the status are updated if the log does
	// not change.
	countInterval = time.Minute
	maxDomains    = 100
)

type limitsReconciler struct {
	client   client.Client
	recorder events.EventRecorder

	mu    sync.Mutex
	fleet func(ctx context.Context) (remediator.Fleet, error) // nil until the remediator runs
}

func (r *limitsReconciler) start(feed *EventSource, fleet func(ctx context.Context) (remediator.Fleet, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fleet = fleet
	feed.limits.Add("")
}

func (r *limitsReconciler) setup(mgr ctrl.Manager, feed *EventSource) error {
	return ctrl.NewControllerManagedBy(mgr).Named("repairlimits").
		For(&v1alpha1.RepairLimits{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		WithOptions(controllerOptions(1)).
		WatchesRawSource(resource.Source(&feed.limits, func(context.Context, string) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: v1alpha1.RepairLimitsName}}}
		})).
		Complete(r)
}

// Reconcile writes the status of the RepairLimits.
func (r *limitsReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	l := &v1alpha1.RepairLimits{}
	if err := r.client.Get(ctx, req.NamespacedName, l); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.mu.Lock()
	look := r.fleet
	r.mu.Unlock()
	var again time.Duration
	var mass *metav1.Condition
	var opens time.Time
	after := l.DeepCopy()
	after.Status = v1alpha1.RepairLimitsStatus{Conditions: l.Status.Conditions}
	if look != nil {
		fleet, err := look(ctx)
		if err != nil {
			return ctrl.Result{}, err
		}
		now := time.Now()
		mass, again = setUsage(&after.Status, &fleet, now)
		if opens = remediator.NextStart(fleet.Starts, fleet.Limits.PerWindow, fleet.Limits.Window, now); !opens.IsZero() {
			again = min(again, opens.Sub(now))
		}
	}
	return ctrl.Result{RequeueAfter: again}, r.publish(ctx, l, after, mass, opens)
}

// publish writes the status of the RepairLimits. mass is the condition about mass failures, or nil
// if the remediator does not run. opens is when perWindow allows another remediation, or zero if it
// does now.
func (r *limitsReconciler) publish(ctx context.Context, before, after *v1alpha1.RepairLimits, mass *metav1.Condition, opens time.Time) error {
	s := &after.Status
	s.ObservedGeneration = before.Generation
	reason, message := availability(after, mass, opens)
	s.Message = resource.TruncateMessage(message)
	wrong := before.Unreadable.Spec != nil
	s.Conditions = resource.Kstatus(s.Conditions, before.Generation, reason,
		resource.Value{True: !wrong, Message: message}, resource.Value{}, resource.Value{True: wrong, Message: message})
	if mass != nil {
		mass.ObservedGeneration = before.Generation
		meta.SetStatusCondition(&s.Conditions, *mass)
	}
	_, err := resource.Publish(ctx, r.client, r.recorder, before, after, &s.Conditions)
	return err
}

// setUsage sets the counts and returns the delay before the next count.
func setUsage(s *v1alpha1.RepairLimitsStatus, f *remediator.Fleet, now time.Time) (mass *metav1.Condition, again time.Duration) {
	s.Machines, s.Unhealthy = remediator.Total(f.Machines), remediator.Total(f.Unhealthy)
	s.Active, s.Started = remediator.Total(f.Active), len(f.Starts)
	again = countInterval
	closed := func(domain string, l remediator.MassFailure) *metav1.Time {
		passed, ok := f.MassFailuresEnded[domain]
		if left := passed.Add(l.Cooldown).Sub(now); ok && left > 0 {
			again = min(again, left)
			return &metav1.Time{Time: passed.Add(l.Cooldown).Truncate(time.Second)}
		}
		return nil
	}
	atLarge := closed("", f.Limits.Mass)
	for domain := range f.Machines {
		one := v1alpha1.FailureDomainStatus{
			Name: domain, Machines: f.Machines[domain], Unhealthy: f.Unhealthy[domain], Active: f.Active[domain],
			Failing: f.Failing(domain), ClosedUntil: closed(domain, f.Limits.DomainMass),
		}
		if domain != "" && (one.Unhealthy > 0 || one.Active > 0 || one.ClosedUntil != nil) {
			s.FailureDomains = append(s.FailureDomains, one)
		}
	}
	slices.SortFunc(s.FailureDomains, func(a, b v1alpha1.FailureDomainStatus) int {
		return cmp.Or(cmp.Compare(b.Unhealthy, a.Unhealthy), cmp.Compare(a.Name, b.Name))
	})
	s.FailureDomains = s.FailureDomains[:min(len(s.FailureDomains), maxDomains)]
	return massFailure(f, atLarge, s.FailureDomains), again
}

func massFailure(f *remediator.Fleet, atLarge *metav1.Time, domains []v1alpha1.FailureDomainStatus) *metav1.Condition {
	var failing, closed []string
	for _, d := range domains {
		switch {
		case d.Failing:
			failing = append(failing, fmt.Sprintf("%s (%d of %d machines)", d.Name, d.Unhealthy, d.Machines))
		case d.ClosedUntil != nil:
			closed = append(closed, d.Name+" until "+d.ClosedUntil.UTC().Format(time.RFC3339))
		}
	}
	c := &metav1.Condition{Type: v1alpha1.ConditionMassFailure, Status: metav1.ConditionTrue}
	switch {
	case f.FleetFailing():
		c.Reason, c.Message = "Fleet", "too many machines are unhealthy at once; nothing starts"
	case atLarge != nil:
		c.Reason, c.Message = "FleetCooldown", "a mass failure has ended; nothing starts before "+atLarge.UTC().Format(time.RFC3339)
	case len(failing) > 0:
		c.Reason, c.Message = "FailureDomains", "no replacement is created in "+few(failing)
	case len(closed) > 0:
		c.Reason, c.Message = "FailureDomainsCooldown", "no replacement is created in "+few(closed)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "None", "neither the fleet nor a failure domain has a mass failure"
	}
	return c
}

func availability(l *v1alpha1.RepairLimits, mass *metav1.Condition, opens time.Time) (reason, message string) {
	s := &l.Status
	watches := fmt.Sprintf("%s selected, %d unhealthy, %s in progress", view.Count(s.Machines, "machine"), s.Unhealthy, view.Count(s.Active, "remediation")) + windowClause(opens)
	switch {
	case l.Unreadable.Spec != nil:
		return resource.Unreadable, l.Unreadable.Spec.String() + ": correct it; until then nothing starts"
	case len(l.Spec.PauseRequests) > 0:
		return "Paused", "paused, nothing starts: " + strings.Join(l.Spec.PauseRequests, "; ") + "; " + watches
	case mass == nil:
		return "Idle", "no RepairPolicy selects a machine"
	case mass.Status == metav1.ConditionTrue:
		return "MassFailure", mass.Message + "; " + watches
	default:
		return "Watching", watches
	}
}

func windowClause(opens time.Time) string {
	if opens.IsZero() {
		return ""
	}
	return "; perWindow is used up, the next one may start at " + opens.UTC().Format(time.RFC3339)
}

func few(names []string) string {
	if len(names) <= 3 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
}
