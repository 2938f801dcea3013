package doctor

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/doctor/provider"
	"scute.dev/cmd/ctl/pause"
	"scute.dev/cmd/ctl/term"
	"scute.dev/kube/object"
)

// waitingPauses reports Pauses that no daemon has started, and Pauses that wait.
func waitingPauses(ctx context.Context, v *diagnosis) bool {
	const subject = "pauses"
	reader := pause.InCluster(v.cluster, nil)
	list, err := reader.List(ctx, "")
	v.hasPauses = err == nil
	if apierrors.IsForbidden(err) {
		list, err = reader.List(ctx, v.cluster.Namespace)
	}
	if err != nil {
		v.report(warning(subject, "ask for permission to list Pauses, or upgrade the chart", "%v", err))
		return true
	}
	v.pauses = list
	busy, bad := 0, 0
	for _, p := range list {
		if p.Status.FinishedAt == nil {
			busy++
		}
		if r, waits := v.checkPause(subject, p); waits {
			bad++
			v.report(r)
		}
	}
	if bad == 0 {
		v.report(ok(subject, "%d in force, %d in total; none waits", busy, len(list)))
	}
	return true
}

// checkPause returns the result for a Pause, and whether it waits.
func (v *diagnosis) checkPause(subject string, p *v1alpha1.Pause) (r Result, waits bool) {
	name, look := p.Namespace+"/"+p.Name, v.kit.Hint(p.Namespace, "describe", "pause", p.Name)
	s, since := p.Status, p.CreationTimestamp.Time
	if s.PhaseSince != nil {
		since = s.PhaseSince.Time
	}
	long := v.now().Sub(since) > startTimeout
	switch {
	case s.FinishedAt != nil:
		return r, false
	case s.Phase == "" || s.Phase == v1alpha1.PausePending:
		return problem(subject, "check scuted above, and its log lines", "%s was created %s and no daemon has acted on it", name, term.Ago(v.now(), p.CreationTimestamp.Time)),
			v.now().Sub(p.CreationTimestamp.Time) > startTimeout
	case s.Next != "":
		return problem(subject, s.Next+"; "+look, "%s is %s for %s: %s", name, s.Phase, term.Span(v.now().Sub(since)), s.Message), true
	case s.Phase != v1alpha1.PauseAcknowledged && long:
		return warning(subject, look, "%s is %s for %s: %s", name, s.Phase, term.Span(v.now().Sub(since)), s.Message), true
	case p.Spec.Reason == provider.Reason && s.Phase == v1alpha1.PauseAcknowledged && long:
		return warning(subject, v.kit.Hint(p.Namespace, "resume", "cluster", p.Name),
			"%s was left by a provider check that was killed; its clusters stay paused", name), true
	default:
		return r, false
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
		if v.hasPauses && !slices.ContainsFunc(v.pauses, func(p *v1alpha1.Pause) bool { return string(p.UID) == uid }) {
			orphan = true
			v.report(problem("clusters", "scuted restores the cluster when it runs; if it does not, remove annotations "+mark+" and "+object.PausedBeforeAnnotation+", and unpause the cluster",
				"%s has the annotation of Pause %s, which does not exist", name, holder))
		}
	}
	return held, orphan
}
