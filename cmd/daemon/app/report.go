package app

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/internal/trust"
)

// report tells the users of the management cluster why the daemon does not act.
type report struct {
	client      client.Client // reads from a cache
	recorder    events.EventRecorder
	remediation bool
}

// event records a warning on the leader-election Lease.
func (r *report) event(reason, note string) {
	about := &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: trust.LeaseNamespace, Name: trust.LeaseName},
	}
	r.recorder.Eventf(about, nil, corev1.EventTypeWarning, reason, "Act", "%s", resource.TruncateNote(note))
}

// writeStalled writes the fault into the conditions of all unfinished objects. The controllers
// replace these conditions when the gate opens.
func (r *report) writeStalled(ctx context.Context, f *trust.Fault) (err error) {
	lists := []client.ObjectList{&v1alpha1.MoveList{}, &v1alpha1.WorkflowRunList{}, &v1alpha1.PauseList{}, &v1alpha1.BackupScheduleList{}}
	if r.remediation {
		lists = append(lists, &v1alpha1.SurgeRemediationList{})
	}
	for _, list := range lists {
		err = errors.Join(err, r.client.List(ctx, list))
		_ = meta.EachListItem(list, func(item runtime.Object) error { // continues with the next object after an error
			conditions, finished := statusOf(item)
			if o, ok := item.(client.Object); ok && !finished {
				err = errors.Join(err, r.patch(ctx, f, o, conditions))
			}
			return nil
		})
	}
	return err
}

func (r *report) patch(ctx context.Context, f *trust.Fault, o client.Object, list *[]metav1.Condition) error {
	said := resource.Value{Message: f.Message + "; " + f.Next}
	after := resource.Kstatus(*list, o.GetGeneration(), string(f.Reason), said, said, resource.Value{True: true, Message: said.Message})
	if equality.Semantic.DeepEqual(*list, after) {
		return nil
	}
	before, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", o)
	}
	*list = after
	if err := client.IgnoreNotFound(r.client.Status().Patch(ctx, o, client.MergeFrom(before))); err != nil {
		return fmt.Errorf("writing the conditions of %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	return nil
}
