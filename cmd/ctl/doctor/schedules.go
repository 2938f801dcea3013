package doctor

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/term"
)

// failingSchedules reports BackupSchedules that no daemon has started, or whose last backup failed or was missed.
func failingSchedules(ctx context.Context, v *diagnosis) bool {
	const subject = "backups"
	list := &v1alpha1.BackupScheduleList{}
	err := v.list(ctx, list)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err): // the CRDs are of an earlier version
		return true
	case err != nil:
		v.report(warning(subject, "ask for permission to list BackupSchedules, or upgrade the chart", "%v", v.cluster.Explain(err)))
		return true
	}
	bad := 0
	for i := range list.Items {
		if r, fails := v.checkSchedule(subject, &list.Items[i]); fails {
			bad++
			v.report(r)
		}
	}
	if bad == 0 && len(list.Items) > 0 {
		v.report(ok(subject, "%d schedules; none fails", len(list.Items)))
	}
	return true
}

// checkSchedule returns the result for a BackupSchedule, and whether it fails to create backups.
func (v *diagnosis) checkSchedule(subject string, b *v1alpha1.BackupSchedule) (r Result, fails bool) {
	name, look := b.Namespace+"/"+b.Name, v.kit.Hint(b.Namespace, "describe", "backupschedule", b.Name)
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return problem(subject, "check scuted above, and its log lines", "%s was created %s and no daemon has acted on it", name, term.Ago(v.now(), b.CreationTimestamp.Time)),
			v.now().Sub(b.CreationTimestamp.Time) > startTimeout
	case ready.Status == metav1.ConditionFalse:
		last := "no backup has succeeded yet"
		if t := b.Status.LastSuccessfulTime; t != nil {
			last = "the last success was " + term.Ago(v.now(), t.Time)
		}
		return problem(subject, look, "%s creates no backups: %s; %s", name, b.Status.Message, last), true
	default:
		return r, false
	}
}
