package remediator

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Outlook is what happens next to a machine, as far as the log and the policy tell.
type Outlook struct {
	// Rule that decided; "" before a decision.
	Rule string `json:"rule,omitempty"`
	// Since is when the present step began.
	Since time.Time `json:"since,omitzero"`
	// Next is what is waited for.
	Next string `json:"next,omitempty"`
	// Until is when that must have happened, zero for no bound; Then is what happens otherwise.
	Until time.Time `json:"until,omitzero"`
	Then  string    `json:"then,omitempty"`

	Held    bool `json:"held,omitempty"`
	Aborted bool `json:"aborted,omitempty"`
	Frozen  bool `json:"frozen,omitempty"`
}

const takenBack = "the replacement is cancelled, and decided again"

// Ahead says what happens next to a machine. Of the policy its times are used. ok is false when nothing is to happen.
func Ahead(s *State, uid types.UID, policy Policy) (o Outlook, ok bool) {
	u := s.Unhealthy[uid]
	if u != nil {
		o.Rule, o.Held, o.Aborted = u.Decision.Rule, u.Held, u.Aborted
	}
	switch a := s.activeOf(uid); {
	case a != nil:
		a.ahead(&o, s.Owner, policy.Timeouts)
	case u != nil && u.Mark != nil:
		u.ahead(&o, policy)
	default:
		return Outlook{}, false
	}
	return o, true
}

// ahead of a remediation that has been started.
func (a *Active) ahead(o *Outlook, of Owner, t Timeouts) {
	owner, limit := of.Name, time.Duration(0)
	o.Since = a.Since
	first := a.Request.Method == OwnerRemediation
	switch a.Step {
	case Requesting:
		o.Next, limit, o.Then = owner+" creates another machine", t.ScaleUp, takenBack
		if first {
			o.Next = fmt.Sprintf("%s deletes %s, and creates another machine", owner, a.Victim.Name)
		}
	case Replacing:
		o.Next, limit, o.Then = fmt.Sprintf("%s deletes %s when %s is ready", owner, a.Victim.Name, a.Replacement.Name), t.Ready, takenBack
	case Removing:
		o.Next, limit, o.Then = fmt.Sprintf("%s deletes %s", owner, a.Victim.Name), t.Removal, takenBack
	case Deleting:
		o.Next = a.Victim.Name + " goes, and its place is taken"
	case Settling:
		o.Next, limit, o.Then = cmp.Or(a.Replacement.Name, "another machine")+" becomes ready", t.Ready+t.ScaleUp, "it ends as Cancelled"
	case Cancelling:
		o.Next = "the replacement is cancelled"
	case Sparing:
		o.Next = "the replacement is cancelled"
		if a.Replacement.Name != "" {
			o.Next = fmt.Sprintf("%s deletes %s", owner, a.Replacement.Name)
		}
		if len(a.Extras) > 0 && a.Replacement.Name != "" {
			o.Next = fmt.Sprintf("%s deletes what is too many of %s", owner, a.newNames())
		}
		if of.Kind == string(ControlPlane) {
			limit, o.Then = t.Removal, "it ends as Cancelled, and all machines are decided on again"
		}
	}
	if limit > 0 {
		o.Until = a.Since.Add(limit)
	} else {
		o.Then = ""
	}
	if a.Frozen != "" { // the time does not count
		*o = Outlook{Rule: a.Frozen, Since: a.FrozenAt, Next: "it continues when this has passed: " + a.FrozenReason, Held: o.Held, Aborted: o.Aborted, Frozen: true}
	}
}

// ahead of a machine for which no replacement was asked.
func (u *UnhealthyMachine) ahead(o *Outlook, policy Policy) {
	o.Since = u.Mark.Since
	if u.Mark.State == Failing {
		o.Rule, o.Next = "", "it is unhealthy when the time of the check is over"
		return
	}
	d := u.Decision
	o.Since = u.DecidedAt
	o.Next, o.Frozen = d.Reason, d.Verdict == Freeze
	switch {
	case d.Verdict == "":
		o.Since, o.Next = u.MarkedAt, "scute decides how it is replaced"
	case u.Evidence.DryRun && d.acts():
		o.Next = "nothing: the policy is a dry run"
	case u.EscalationStep != "":
		o.Since, o.Next, o.Then = u.EscalationSince, "step "+u.EscalationStep+" of the policy's escalation makes it healthy", "the next step, or a replacement"
		if step, ok := stepNamed(policy.Escalation, u.EscalationStep); ok {
			o.Until = u.EscalationSince.Add(step.Timeout)
		}
	case d.Rule == "hold" && !u.HoldUntil.IsZero():
		o.Until, o.Then = u.HoldUntil, "it is decided again"
	case d.Rule == "policy-hold" && policy.Hold > 0:
		o.Until, o.Then = u.UnhealthyAt.Add(policy.Hold), "it is decided again"
	case d.Rule == "cooldown" && !u.LastAttempt.IsZero() && policy.Limits.Cooldown > 0:
		o.Until, o.Then = u.LastAttempt.Add(policy.Limits.Cooldown), "it is decided again"
	}
}
