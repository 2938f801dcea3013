package remediation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/remediator"
	"scute.dev/remediator/observe"
	"scute.dev/remediator/runner"
	"scute.dev/view"
)

// publish writes what a policy watches into its status. wrong are problems that only a user can fix. It runs again at the end of the cooldown after a
// mass failure, and when the limit of a window allows another remediation, because no event reports these times.
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

// maxReasonLength bounds the texts of one remediation in the history of a policy, which has several.
const maxReasonLength = 512

// history returns the last remediations of a policy, with texts of bounded length.
func (r *policyReconciler) history(p *v1alpha1.RepairPolicy) []v1alpha1.PastRemediation {
	list := r.view.History(p.Namespace, p.Name, v1alpha1.MostPastRemediations)
	for i := range list {
		list[i].Reason, list[i].Message = resource.Truncate(list[i].Reason, maxReasonLength), resource.Truncate(list[i].Message, maxReasonLength)
	}
	return list
}

// etcd returns the etcd problems of the control planes, alarms first, with texts of bounded length.
func (r *policyReconciler) etcd(s *scope) []v1alpha1.EtcdProblem {
	var alarms, others []v1alpha1.EtcdProblem
	for i := range s.planes {
		for _, e := range r.view.Etcd(s.planes[i].owner.Owner().ID()) {
			e.Message = resource.Truncate(e.Message, maxReasonLength)
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

// policyStatus returns the status of a policy. calm is the end of the cooldown after a mass failure, zero without one. opens is when the limit of a
// window allows another remediation, zero if it already does.
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

// policySummary returns one sentence about what a policy does now, or why it does nothing.
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

// windowClause returns a clause if the limit of a window is used up until opens, otherwise "".
func windowClause(opens time.Time) string {
	if opens.IsZero() {
		return ""
	}
	return "; perWindow is used up, the next one may start at " + opens.UTC().Format(time.RFC3339)
}

// few lists at most three names.
func few(names []string) string {
	if len(names) <= 3 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
}
