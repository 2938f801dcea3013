package doctor

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
)

// failingSchedules reports BackupSchedules that no daemon has started, or whose last backup failed or was missed.
func failingSchedules(ctx context.Context, v *diagnosis) bool {
	const subject = "backups"
	list := &v1alpha1.BackupScheduleList{}
	_, err := v.list(ctx, list)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err): // the CRDs are of an earlier version
		return true
	case err != nil:
		v.report(warning(subject, "ask for permission to list BackupSchedules, or upgrade the chart", "%v", v.cluster.Explain(err)))
		return true
	}
	if len(list.Items) > 0 {
		reportEach(v, list.Items, v.checkSchedule, func() Result { return ok(subject, "%d schedules; none fails", len(list.Items)) })
	}
	return true
}

// checkSchedule returns the result for a BackupSchedule that fails to create backups.
func (v *diagnosis) checkSchedule(b *v1alpha1.BackupSchedule) *Result {
	const subject = "backups"
	name, look := b.Namespace+"/"+b.Name, v.kit.Hint(b.Namespace, "describe", "backupschedule", b.Name)
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return v.unheard(subject, b)
	case ready.Status == metav1.ConditionFalse:
		last := "no backup has succeeded yet"
		if t := b.Status.LastSuccessfulTime; t != nil {
			last = "the last success was " + cli.Ago(v.now(), t.Time)
		}
		return new(problem(subject, look, "%s creates no backups: %s; %s", name, b.Status.Message, last))
	default:
		return nil
	}
}
