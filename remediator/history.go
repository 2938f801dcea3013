package remediator

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
)

// History lists the remediations that were begun under a policy and have ended, as users see them, the newest first. A machine that
// recovered before anything was begun for it is not in it.
func History(s *State, policy string) []v1alpha1.PastRemediation {
	var list []v1alpha1.PastRemediation
	for i := len(s.History) - 1; i >= 0; i-- {
		e := &s.History[i]
		started := e.StartedAt
		if started.IsZero() {
			started = e.StepSince
		}
		if started.IsZero() || e.Evidence.PolicyName != policy {
			continue
		}
		status := ofEnd(e)
		list = append(list, v1alpha1.PastRemediation{
			Machine: e.Victim.Name, Cluster: s.Owner.Cluster, Owner: s.Owner.Kind + "/" + s.Owner.Name, Reason: e.Reason,
			Method: said(Decision{Verdict: cmp.Or(e.Method, e.Decision.Verdict), Relaxed: e.Relaxed}), Outcome: status.Phase, Message: status.Message,
			Replacement: e.Replacement.Name, StartedAt: metav1.Time{Time: started}, FinishedAt: metav1.Time{Time: e.EndedAt},
		})
	}
	return list
}
