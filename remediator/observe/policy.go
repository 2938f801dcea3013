package observe

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// Select returns the policy for machines of an owner's kind in a cluster with the labels cluster:
// the first policy by name that selects them. If none does, it returns the first policy whose
// selector cannot be read, because a remediation may have started under that policy. It returns nil
// if there is neither.
func Select(policies []v1alpha1.RepairPolicy, cluster map[string]string, ownerKind string) *v1alpha1.RepairPolicy {
	return scopesOf(policies).first(cluster, ownerKind)
}

// Selects reports whether a policy selects machines of an owner's kind in a cluster with the labels
// cluster. It returns Unknown if the selector cannot be read.
func Selects(p *v1alpha1.RepairPolicy, cluster map[string]string, ownerKind string) object.ConditionStatus {
	return scopeOf(p).selects(cluster, ownerKind)
}

type scope struct {
	policy                 *v1alpha1.RepairPolicy
	unreadable             bool
	controlPlanes, workers bool
	selector               labels.Selector // nil if it is invalid
}

// scopes is a list of scopes, sorted by the names of their policies. It is computed once for many
// clusters.
type scopes []scope

func scopesOf(policies []v1alpha1.RepairPolicy) scopes {
	var list scopes
	for i := range policies {
		if p := &policies[i]; p.DeletionTimestamp == nil {
			list = append(list, scopeOf(p))
		}
	}
	slices.SortFunc(list, func(a, b scope) int { return cmp.Compare(a.policy.Name, b.policy.Name) })
	return list
}

// first implements Select.
func (s scopes) first(cluster map[string]string, ownerKind string) *v1alpha1.RepairPolicy {
	var unknown *v1alpha1.RepairPolicy
	for i := range s {
		switch s[i].selects(cluster, ownerKind) {
		case object.True:
			return s[i].policy
		case object.False:
		default:
			unknown = cmp.Or(unknown, s[i].policy)
		}
	}
	return unknown
}

func scopeOf(p *v1alpha1.RepairPolicy) scope {
	spec := p.Spec
	if wrong := p.Unreadable.Spec; wrong != nil { // the selector may be readable even if another field is not
		var written struct {
			Selector      metav1.LabelSelector `json:"selector"`
			ControlPlanes *bool                `json:"controlPlanes"`
			Workers       bool                 `json:"workers"`
		}
		if err := json.Unmarshal(wrong.Raw, &written); err != nil {
			return scope{policy: p, unreadable: true}
		}
		spec.Selector, spec.ControlPlanes, spec.Workers = written.Selector, written.ControlPlanes, written.Workers
	}
	s := scope{policy: p, controlPlanes: spec.ControlPlanes == nil || *spec.ControlPlanes, workers: spec.Workers}
	if selector, err := metav1.LabelSelectorAsSelector(&spec.Selector); err == nil {
		s.selector = selector
	}
	return s
}

func (s scope) selects(cluster map[string]string, ownerKind string) object.ConditionStatus {
	wanted := s.workers
	if selectedAsControlPlane(ownerKind) {
		wanted = s.controlPlanes
	}
	switch {
	case s.unreadable:
		return object.Unknown
	case !wanted:
		return object.False
	case s.selector == nil:
		return object.Unknown
	case s.selector.Matches(labels.Set(cluster)):
		return object.True
	default:
		return object.False
	}
}

// Unreadable returns why a policy cannot be read, or "" if it can.
func Unreadable(p *v1alpha1.RepairPolicy) string {
	if wrong := p.Unreadable.Spec; wrong != nil {
		return wrong.Field + ": " + wrong.Problem
	}
	if _, err := metav1.LabelSelectorAsSelector(&p.Spec.Selector); err != nil {
		return "spec.selector: " + err.Error()
	}
	return ""
}

// selectedAsControlPlane reports whether a policy selects an owner kind by spec.controlPlanes, and
// not by spec.workers. It recognizes unknown kinds of control planes too, because all of their
// names end with ControlPlane.
func selectedAsControlPlane(ownerKind string) bool {
	kind, _, _ := strings.Cut(ownerKind, ".")
	return strings.HasSuffix(kind, "ControlPlane")
}

// Policy returns the facts about a RepairPolicy. It applies the defaults of the schema, because the
// policy may be older than a field. For a policy that cannot be read, it returns only the name, the
// UID and the reason, because a default must not replace a value that the policy may contain.
func Policy(p *v1alpha1.RepairPolicy) remediator.Policy {
	if why := Unreadable(p); why != "" {
		return remediator.Policy{Name: p.Name, UID: p.UID, Unreadable: why}
	}
	s := &p.Spec
	f := remediator.Policy{
		Name: p.Name, UID: p.UID, DryRun: s.DryRun, Paused: s.PauseRequests, AllowsDeleteFirst: s.AcceptDeleteFirst, GuardsMachines: s.GuardDeletions,
		Hold: s.Hold.Or(0), Attempts: int(cmp.Or(s.MaxAttempts, 3)),
		Checks: remediator.Checks{
			NodeStartup: s.Checks.NodeStartup.Or(10 * time.Minute),
			Machine:     checks(s.Checks.UnhealthyMachineConditions), Node: checks(s.Checks.UnhealthyNodeConditions),
		},
		Limits: remediator.Limits{
			AtOnce: int(cmp.Or(s.Limits.AtOnce, 3)), PerWindow: int(cmp.Or(s.Limits.PerWindow, 10)), Window: positive(s.Limits.Window, time.Hour),
			WorkersAtOnce: int(cmp.Or(s.Limits.WorkersAtOnce, 1)),
			MassFailure: remediator.MassFailure{
				Percent: int(cmp.Or(s.Limits.MassFailure.Percent, 20)), Floor: int(cmp.Or(s.Limits.MassFailure.Floor, 4)), Cooldown: s.Limits.MassFailure.Cooldown.Or(10 * time.Minute),
			},
			Cooldown: s.Limits.Cooldown.Or(5 * time.Minute),
		},
		Timeouts: remediator.Timeouts{
			ScaleUp: positive(s.Timeouts.ScaleUp, 5*time.Minute), Ready: positive(s.Timeouts.Ready, 20*time.Minute),
			Removal: positive(s.Timeouts.Removal, 30*time.Minute),
		},
		Removal: remediator.Removal{Drain: s.Removal.DrainTimeout.Or(0), Detach: s.Removal.VolumeDetachTimeout.Or(0)},
	}
	if s.Etcd != nil {
		f.Survey = max(time.Minute, s.Etcd.Interval.Duration)
		f.Defragmentation = defragmentation(s.Etcd.Defragmentation)
	}
	f.Checks.Notices = notices(s.Notices)
	f.Hooks = slices.Clone(s.AllowedHooks)
	if len(f.Checks.Node) == 0 {
		for _, status := range []object.ConditionStatus{object.False, object.Unknown} {
			f.Checks.Node = append(f.Checks.Node, remediator.Check{Type: "Ready", Status: status, Timeout: 5 * time.Minute})
		}
	}
	methods := s.Methods
	if len(methods) == 0 {
		methods = []v1alpha1.RepairMethod{v1alpha1.MethodRolloutSurge, v1alpha1.MethodSurge, v1alpha1.MethodRelaxedSurge, v1alpha1.MethodOwnerRemediation}
	}
	f.Methods = make(map[v1alpha1.RepairMethod]bool, len(methods))
	for _, m := range methods {
		f.Methods[m] = true
	}
	for _, step := range s.Escalation {
		e := remediator.EscalationStep{Name: step.Name, Timeout: step.Timeout.Duration}
		e.APIVersion, e.Kind = kindOfStep(step)
		f.Escalation = append(f.Escalation, e)
	}
	return f
}

func defragmentation(d *v1alpha1.RepairDefragmentation) remediator.Defragmentation {
	if d == nil {
		return remediator.Defragmentation{}
	}
	return remediator.Defragmentation{
		Enabled: true, FreePercent: int(cmp.Or(d.FreePercent, 45)), MinSize: int64(cmp.Or(d.MinSizeMiB, 100)) << 20,
		Pause: max(time.Minute, d.Pause.Or(10*time.Minute)), Deadline: min(max(10*time.Second, d.Deadline.Or(time.Minute)), 5*time.Minute),
		Disarm: d.DisarmNoSpace,
	}
}

func checks(conditions []v1alpha1.UnhealthyCondition) []remediator.Check {
	var all []remediator.Check
	for _, c := range conditions {
		all = append(all, remediator.Check{Type: c.Type, Status: object.ConditionStatus(c.Status), Timeout: c.Timeout.Duration})
	}
	return all
}

// positive returns the duration, or otherwise if it is nil or not positive.
func positive(d *v1alpha1.Duration, otherwise time.Duration) time.Duration {
	if d == nil || d.Duration <= 0 {
		return otherwise
	}
	return d.Duration
}
