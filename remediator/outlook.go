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
	p := s.Patients[uid]
	if p != nil {
		o.Rule, o.Held, o.Aborted = p.Decision.Rule, p.Held, p.Aborted
	}
	switch {
	case s.Active != nil && s.Active.Victim.UID == uid:
		s.Active.ahead(&o, s.Owner.Name, policy.Timeouts)
	case p != nil && p.Mark != nil:
		p.ahead(&o, policy)
	default:
		return Outlook{}, false
	}
	return o, true
}

// ahead of a remediation that has been started.
func (a *Active) ahead(o *Outlook, owner string, t Timeouts) {
	limit := time.Duration(0)
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
func (p *Patient) ahead(o *Outlook, policy Policy) {
	o.Since = p.Mark.Since
	if p.Mark.State == Failing {
		o.Rule, o.Next = "", "it is unhealthy when the time of the check is over"
		return
	}
	d := p.Decision
	o.Since = p.DecidedAt
	o.Next, o.Frozen = d.Reason, d.Verdict == Freeze
	switch {
	case d.Verdict == "":
		o.Since, o.Next = p.MarkedAt, "scute decides how it is replaced"
	case p.Seen.DryRun && d.acts():
		o.Next = "nothing: the policy is a dry run"
	case p.Rung != "":
		o.Since, o.Next, o.Then = p.RungSince, "step "+p.Rung+" of the policy's escalation makes it healthy", "the next step, or a replacement"
		if rung, ok := rungNamed(policy.Ladder, p.Rung); ok {
			o.Until = p.RungSince.Add(rung.Timeout)
		}
	case d.Rule == "hold" && !p.HoldUntil.IsZero():
		o.Until, o.Then = p.HoldUntil, "it is decided again"
	case d.Rule == "policy-hold" && policy.Hold > 0:
		o.Until, o.Then = p.UnhealthyAt.Add(policy.Hold), "it is decided again"
	case d.Rule == "cooldown" && !p.LastAttempt.IsZero() && policy.Limits.Cooldown > 0:
		o.Until, o.Then = p.LastAttempt.Add(policy.Limits.Cooldown), "it is decided again"
	}
}
