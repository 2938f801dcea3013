package doctor

import (
	"context"
	"slices"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/doctor/provider"
	"scute.dev/kube/object"
)

// waitingPauses reports Pauses that no daemon has started, and Pauses that wait.
func waitingPauses(ctx context.Context, v *diagnosis) bool {
	const subject = "pauses"
	list := &v1alpha1.PauseList{}
	everywhere, err := v.list(ctx, list)
	if v.hasPauses = everywhere; err != nil {
		v.report(warning(subject, "ask for permission to list Pauses, or upgrade the chart", "listing pauses: %v", v.cluster.Explain(err)))
		return true
	}
	v.pauses = list.Items
	reportEach(v, list.Items, v.checkPause, func() Result {
		busy := 0
		for i := range list.Items {
			if list.Items[i].Status.FinishedAt == nil {
				busy++
			}
		}
		return ok(subject, "%d in force, %d in total; none waits", busy, len(list.Items))
	})
	return true
}

// checkPause returns the result for a Pause that waits.
func (v *diagnosis) checkPause(p *v1alpha1.Pause) *Result {
	const subject = "pauses"
	name, look := p.Namespace+"/"+p.Name, v.kit.Hint(p.Namespace, "describe", "pause", p.Name)
	s, since := p.Status, p.CreationTimestamp.Time
	if s.PhaseSince != nil {
		since = s.PhaseSince.Time
	}
	age := v.now().Sub(since)
	long := age > startTimeout
	switch {
	case s.FinishedAt != nil:
		return nil
	case s.Phase == "" || s.Phase == v1alpha1.PausePending:
		return v.unheard(subject, p)
	case s.Next != "":
		return new(problem(subject, s.Next+"; "+look, "%s is %s for %s: %s", name, s.Phase, cli.Span(age), s.Message))
	case s.Phase != v1alpha1.PauseAcknowledged && long:
		return new(warning(subject, look, "%s is %s for %s: %s", name, s.Phase, cli.Span(age), s.Message))
	case p.Spec.Reason == provider.Reason && s.Phase == v1alpha1.PauseAcknowledged && long:
		return new(warning(subject, v.kit.Hint(p.Namespace, "resume", "cluster", p.Name), "%s was left by a provider check that was killed; its clusters stay paused", name))
	default:
		return nil
	}
}

// pausedByPause reports whether a cluster is held by a Pause, and whether that Pause no longer exists.
func pausedByPause(v *diagnosis, name string, o object.Observed) (held, orphan bool) {
	for mark, holder := range o.PauseHolders {
		uid, is := strings.CutPrefix(mark, object.PausePrefix)
		if !is {
			continue
		}
		held = true
		if v.hasPauses && !slices.ContainsFunc(v.pauses, func(p v1alpha1.Pause) bool { return string(p.UID) == uid }) {
			orphan = true
			v.report(problem("clusters", "scuted restores the cluster when it runs; if it does not, remove annotations "+mark+" and "+object.PausedBeforeAnnotation+", and unpause the cluster",
				"%s has the annotation of Pause %s, which does not exist", name, holder))
		}
	}
	return held, orphan
}
