package page

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/remediation"
	runs "scute.dev/cmd/ctl/run"
	"scute.dev/mover"
	"scute.dev/ui/act"
	"scute.dev/workflow"
)

// Act is a link to the page that confirms an action.
type Act struct{ Word, Link string }

// AllowActs enables actions on pages of the present.
func (s *Site) AllowActs() { s.acts = true }

// offer returns a link to the confirmation of an action. It returns nil on pages of the past, where an action has no use.
func (v *view) offer(word string, a act.Ask) []Act {
	if v.past || !v.site.acts {
		return nil
	}
	return []Act{{Word: word + "…", Link: "/act?" + a.Query().Encode()}}
}

func (v *view) runActs(r *runs.Run) []Act {
	ask := act.Ask{Do: "pause", Kind: "run", Namespace: r.Namespace, Name: r.Name, ID: r.ID}
	switch now := workflow.Look(r.State); {
	case runs.Finished(r.Phase()), r.Phase() == v1alpha1.RunStranded:
		return nil
	case now.Paused, r.Phase() == v1alpha1.RunAborted:
		ask.Do = "resume"
		return v.offer("Resume", ask)
	case now.Stopping: // it rolls back, or waits for a decision about the rollback
		return nil
	default:
		return v.offer("Pause", ask)
	}
}

func (v *view) moveActs(id string, m *v1alpha1.Move) []Act {
	if m.Status.FinishedAt != nil || slices.Contains([]mover.Phase{
		mover.PhaseVerified, mover.PhaseDeleting, mover.PhaseResuming, mover.PhaseRollingBack, mover.PhaseStranded,
	}, m.Status.Phase) {
		return nil
	}
	return v.offer("Abort", act.Ask{Do: "abort", Kind: "move", Namespace: m.Namespace, Name: m.Name, ID: id})
}

func (v *view) pauseActs(id string, r *v1alpha1.Pause) []Act {
	if r.Status.FinishedAt != nil || r.Status.Phase == v1alpha1.PauseRestoring || r.Status.Phase == v1alpha1.PauseResuming {
		return nil
	}
	return v.offer("Delete", act.Ask{Do: "delete", Kind: "pause", Namespace: r.Namespace, Name: r.Name, ID: id})
}

func (v *view) machineActs(r *v1alpha1.SurgeRemediation) (out []Act) {
	if !remediation.Open(r) {
		return nil
	}
	ask := act.Ask{Kind: "remediation", Namespace: r.Namespace, Name: r.Name, ID: r.Status.RemediationID}
	if r.Spec.Hold != nil || r.Spec.Abort {
		ask.Do = "release"
		return v.offer("Release", ask)
	}
	ask.Do = "hold"
	out = v.offer("Hold", ask)
	if remediation.UnderWay(r.Status.Phase) {
		ask.Do = "abort"
		out = append(out, v.offer("Abort", ask)...)
	}
	return out
}

// policyActs returns the actions on the policies of open cases. Both are offered, because the log does not record whether a policy is paused.
func (v *view) policyActs(namespace string, cases []Case) (out []Act) {
	var seen []string
	for _, c := range cases {
		if !c.Open || c.Policy == "" || slices.Contains(seen, c.Policy) {
			continue
		}
		seen = append(seen, c.Policy)
		ask := act.Ask{Do: "pause", Kind: "policy", Namespace: namespace, Name: c.Policy}
		out = append(out, v.offer("Pause policy "+c.Policy, ask)...)
		ask.Do = "resume"
		out = append(out, v.offer("Resume policy "+c.Policy, ask)...)
	}
	return out
}

// confirmation is the page that confirms an action or shows its result.
type confirmation struct {
	Verb string
	act.Ask
	Offer *act.Offer
	Said  []string
	Wrong string
	Back  string
}

// Confirm renders the page that shows the effect of an action and asks for confirmation.
func (s *Site) Confirm(o *act.Offer) ([]byte, error) {
	return s.answer(confirmation{Ask: o.Ask, Offer: o})
}

// Done renders the page with the result of an action.
func (s *Site) Done(a act.Ask, said []string, wrong error) ([]byte, error) {
	c := confirmation{Ask: a, Said: said}
	if wrong != nil {
		c.Wrong = cmp.Or(strings.TrimSpace(wrong.Error()), "it was refused")
	}
	return s.answer(c)
}

func (s *Site) answer(c confirmation) ([]byte, error) {
	c.Back = back(c.Ask)
	if c.Do != "" {
		c.Verb = strings.ToUpper(c.Do[:1]) + c.Do[1:]
	}
	return render("act.html", c)
}

// back returns the page of the object that an action changed.
func back(a act.Ask) string {
	switch a.Kind {
	case "run", "move", "pause":
		return "/" + a.Kind + "?" + url.Values{"id": {a.ID}}.Encode()
	case "remediation":
		return "/owner?" + url.Values{"id": {strings.TrimSuffix(a.ID, "/"+a.Name)}}.Encode()
	default:
		return "/fleet"
	}
}
