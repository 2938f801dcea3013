package doctor

import (
	"context"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/view"
)

// readableObject is an object of one of scute's kinds.
type readableObject interface {
	client.Object
	Unread() *v1alpha1.UnreadablePart
}

// readable reports objects that were stored under another schema and that scute cannot read.
func readable(ctx context.Context, v *diagnosis) {
	const subject = "resources"
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	all, bad := 0, 0
	lists := map[string]client.ObjectList{
		"BackupSchedule": &v1alpha1.BackupScheduleList{},
		"Move":           &v1alpha1.MoveList{}, "Pause": &v1alpha1.PauseList{}, "WorkflowRun": &v1alpha1.WorkflowRunList{}, "RepairPolicy": &v1alpha1.RepairPolicyList{}, "RepairLimits": &v1alpha1.RepairLimitsList{},
		"SurgeRemediation": &v1alpha1.SurgeRemediationList{}, "SurgeRemediationTemplate": &v1alpha1.SurgeRemediationTemplateList{},
	}
	for _, kind := range slices.Sorted(maps.Keys(lists)) {
		list := lists[kind]
		err := v.cluster.Client.List(ctx, list)
		if apierrors.IsForbidden(err) && kind == "RepairLimits" {
			continue // cluster-scoped: forbidden to users with access to some namespaces only
		}
		if apierrors.IsForbidden(err) {
			err = v.cluster.Client.List(ctx, list, client.InNamespace(v.cluster.Namespace))
		}
		if err != nil {
			v.report(warning(subject, "ask for permission to list them, or upgrade the chart", "%s: %v", kind, v.cluster.Explain(err)))
			bad++
			continue
		}
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			all++
			if o, ok := o.(readableObject); ok && o.Unread() != nil {
				bad++
				v.report(unreadableResult(subject, kind, o))
			}
			return nil
		})
	}
	if bad == 0 {
		v.report(ok(subject, "%s of scute's kinds, all readable", view.Count(all, "object")))
	}
}

// unreadableResult returns the result for an object with an unreadable part.
func unreadableResult(subject, kind string, o readableObject) Result {
	name, in, part := kind+" "+o.GetNamespace()+"/"+o.GetName(), "-n "+o.GetNamespace()+" ", o.Unread()
	if o.GetNamespace() == "" {
		name, in = kind+" "+o.GetName(), ""
	}
	if strings.HasPrefix(part.Field, "status") {
		return warning(subject, "wait: scuted writes the status again; if it does not, check scuted above, and its log lines", "%s: %s", name, part)
	}
	ref := strings.ToLower(kind) + " " + o.GetName()
	remedy := "correct the field: kubectl " + in + "edit " + ref
	if kind == "Move" || kind == "Pause" || kind == "WorkflowRun" {
		remedy = "its spec is immutable: create another one without the mistake, and delete this one: kubectl " + in + "delete " + ref
	}
	return problem(subject, remedy, "%s: %s", name, part)
}
