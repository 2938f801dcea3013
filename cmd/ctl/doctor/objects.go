package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/internal/trust"
	"scute.dev/mover"
	"scute.dev/view"
)

// startTimeout is how long a new resource may exist before the daemon acts on it.
const startTimeout = time.Minute

type scuteKind struct {
	// subject is the subject of results about objects of this kind, or "" if another check reports
	// their state. noun is the name of the kind in commands.
	subject, noun, name string
	list                client.ObjectList
}

func (v *diagnosis) kinds() []scuteKind {
	return []scuteKind{
		{"moves", "move", "Move", &v.moves},
		{"workflows", "run", "WorkflowRun", &v.workflows},
		{"pauses", "pause", "Pause", &v.pauses},
		{"backups", "backupschedule", "BackupSchedule", &v1alpha1.BackupScheduleList{}},
		{"", "policy", "RepairPolicy", &v1alpha1.RepairPolicyList{}},
		{"", "", "RepairLimits", &v1alpha1.RepairLimitsList{}},
		{"", "remediation", "SurgeRemediation", &v1alpha1.SurgeRemediationList{}},
		{"", "", "SurgeRemediationTemplate", &v1alpha1.SurgeRemediationTemplateList{}},
	}
}

type readableObject interface {
	client.Object
	Unread() *v1alpha1.UnreadablePart
}

// objectStatus is the part of the status that most of scute's kinds share.
type objectStatus struct {
	Phase, Message, Next                       string
	PhaseSince, FinishedAt, LastSuccessfulTime *metav1.Time
	Conditions                                 []metav1.Condition
}

// checkObjects reports objects that are unreadable, not started, or waiting for a user.
func checkObjects(ctx context.Context, v *diagnosis) {
	v.listed = make(map[string]bool)
	all, unread := 0, false
	for _, k := range v.kinds() {
		everywhere, err := v.list(ctx, k.list)
		if apierrors.IsForbidden(err) && k.name == "RepairLimits" {
			continue // it is cluster-scoped: users with access to some namespaces only may not list it
		}
		if err != nil {
			r := warning(cmp.Or(k.subject, "resources"), "ask for the ClusterRole scute-viewer, or upgrade the chart", "%s: %v", k.name, v.cluster.Explain(err))
			if k.name == "Move" { // an unlisted move may have stopped halfway
				r.Level = levelProblem
			}
			v.report(r)
			unread = true
			continue
		}
		v.listed[k.name] = everywhere
		busy, found, bad := 0, 0, 0
		_ = meta.EachListItem(k.list, func(item runtime.Object) error {
			o, ok := item.(readableObject)
			if !ok {
				return nil
			}
			found++
			if o.Unread() != nil {
				unread = true
				v.report(unreadableResult("resources", k.name, o))
			}
			if k.subject == "" {
				return nil
			}
			s := statusOf(o)
			if s.FinishedAt == nil {
				busy++
			}
			if r := v.checkObject(k, o, s); r != nil {
				bad++
				v.report(*r)
			}
			return nil
		})
		all += found
		switch {
		case k.subject == "" || bad > 0:
		case k.name != "BackupSchedule":
			v.report(ok(k.subject, "%d in progress, %d in total; none waits for an operator", busy, found))
		case found > 0:
			v.report(ok(k.subject, "%s; none fails", view.Count(found, "schedule")))
		}
	}
	if everywhere, listed := v.listed["Move"]; listed && !everywhere {
		v.report(warning("moves", "ask for permission to list moves of all namespaces", "only moves of namespace %s could be checked", v.cluster.Namespace))
	}
	if !unread {
		v.report(ok("resources", "%d of scute's kinds, all readable", all))
	}
}

func statusOf(o client.Object) objectStatus {
	var out struct{ Status objectStatus }
	if data, err := json.Marshal(o); err == nil {
		_ = json.Unmarshal(data, &out)
	}
	return out.Status
}

// checkObject returns a result if no daemon works on an object, if the object waits too long, or if
// it waits for a user. Otherwise it returns nil.
func (v *diagnosis) checkObject(k scuteKind, o client.Object, s objectStatus) *result {
	name, look, created := o.GetNamespace()+"/"+o.GetName(), v.kit.Hint(o.GetNamespace(), "describe", k.noun, o.GetName()), o.GetCreationTimestamp().Time
	untrusted := trust.FaultIn(s.Conditions)
	switch {
	case s.FinishedAt != nil:
		return nil
	case untrusted != nil:
		return new(problem(k.subject, reconcileRemedy(v, untrusted), "%s is stalled in %s: %s", name, s.Phase, untrusted.Message))
	case (s.Phase == "" || s.Phase == string(mover.PhasePending)) && s.Message == "":
		if v.now().Sub(created) <= startTimeout {
			return nil
		}
		return new(problem(k.subject, "check scuted above, and its log lines", "%s was created %s and no daemon has acted on it", name, cli.Ago(v.now(), created)))
	}
	state, since := name+" is "+s.Phase, created
	if s.PhaseSince != nil {
		since = s.PhaseSince.Time
		state += " for " + cli.Span(v.now().Sub(since))
	}
	state += ": " + s.Message
	pause, _ := o.(*v1alpha1.Pause)
	long, paused := v.now().Sub(since) > startTimeout, s.Phase == string(v1alpha1.PauseAcknowledged)
	switch {
	case k.name == "BackupSchedule" && meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionReady): // also while the next attempt runs
		last := "no backup has succeeded yet"
		if s.LastSuccessfulTime != nil {
			last = "the last success was " + cli.Ago(v.now(), s.LastSuccessfulTime.Time)
		}
		return new(problem(k.subject, strings.TrimPrefix(s.Next+"; "+look, "; "), "%s; %s", state, last))
	case s.Next != "" || meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionStalled):
		if k.name == "WorkflowRun" { // the run may wait for an approval
			return new(warning(k.subject, look, "%s", state))
		}
		return new(problem(k.subject, strings.TrimPrefix(s.Next+"; "+look, "; "), "%s", state))
	case pause != nil && !paused && long:
		return new(warning(k.subject, look, "%s", state))
	case pause != nil && paused && long && pause.Spec.Reason == providerReason:
		return new(warning(k.subject, v.kit.Hint(o.GetNamespace(), "resume", "cluster", o.GetName()), "%s was left by a provider check that was killed; its clusters stay paused", name))
	case v.noDaemon && !paused:
		return new(warning(k.subject, "check scuted above; "+look, "%s is in %s and no process drives it", name, s.Phase))
	default:
		return nil
	}
}

func unreadableResult(subject, kind string, o readableObject) result {
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

// list reads the objects of all namespaces. If the user may not list all namespaces, it reads only
// the namespace of the context, and everywhere is false.
func (v *diagnosis) list(ctx context.Context, list client.ObjectList) (everywhere bool, err error) {
	err = v.cluster.Client.List(ctx, list)
	if apierrors.IsForbidden(err) {
		return false, v.cluster.Client.List(ctx, list, client.InNamespace(v.cluster.Namespace))
	}
	return err == nil, err
}
