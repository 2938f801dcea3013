package page

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"scute.dev/cmd/ctl/kit"
)

type actionLink struct{ Word, Link string }

// actionLink returns a link to the confirmation of an action, or nil on pages of the past.
func (v *view) actionLink(word string, a kit.Action) []actionLink {
	if v.Past || !v.site.Actions {
		return nil
	}
	q := url.Values{"do": {a.Do}, "kind": {a.Kind}, "namespace": {a.Namespace}, "name": {a.Name}, "id": {a.ID}}
	return []actionLink{{Word: word + "…", Link: "/act?" + q.Encode()}}
}

func (v *view) acts(actions []kit.Action) (out []actionLink) {
	for _, a := range actions {
		out = append(out, v.actionLink(strings.ToUpper(a.Do[:1])+a.Do[1:], a)...)
	}
	return out
}

// policyActions returns the actions on the policies of open cases. It offers both to pause and to
// resume a policy, because the log does not record whether the policy is paused.
func (v *view) policyActions(namespace string, cases []machineCase) (out []actionLink) {
	var seen []string
	for _, c := range cases {
		policy := c.Remediation.Status.Policy
		if !c.Open || policy == "" || slices.Contains(seen, policy) {
			continue
		}
		seen = append(seen, policy)
		ask := kit.Action{Do: "pause", Kind: "policy", Namespace: namespace, Name: policy}
		out = append(out, v.actionLink("Pause policy "+policy, ask)...)
		ask.Do = "resume"
		out = append(out, v.actionLink("Resume policy "+policy, ask)...)
	}
	return out
}

// Offer describes an action and its effect before the user confirms it.
type Offer struct {
	kit.Action
	kit.Seen
	// Form identifies the form that was sent, so that its action is performed only once.
	Form                         string
	Kind, State, Message, Effect string
	// Reason and Timed mean that the user can enter a reason and a duration. Needed means that a
	// reason is required.
	Reason, Needed, Timed bool
	// Choices are options. If there are any, the user must choose one.
	Choices []string
	// Command is the equivalent scutectl command, or "".
	Command string
}

// Confirmation is the page that asks for confirmation of an action, or shows its result.
type Confirmation struct {
	kit.Action
	// Offer is the offered action. It is nil on a page that shows a result.
	Offer *Offer
	// Said is the output of the action. Err is the reason why the action failed.
	Said []string
	Err  error
}

// Confirm renders the page of an action.
func (s *Site) Confirm(c Confirmation) ([]byte, error) {
	p := struct {
		Confirmation
		Verb, Wrong, Back string
	}{Confirmation: c, Back: backTo(c.Action)}
	if c.Err != nil {
		p.Wrong = cmp.Or(strings.TrimSpace(c.Err.Error()), "the action was refused")
	}
	if c.Do != "" {
		p.Verb = strings.ToUpper(c.Do[:1]) + c.Do[1:]
	}
	return render("act.html", p)
}

func backTo(a kit.Action) string {
	switch a.Kind {
	case "run", "move", "pause":
		return "/" + a.Kind + "?" + url.Values{"id": {a.ID}}.Encode()
	case "remediation":
		return "/owner?" + url.Values{"id": {strings.TrimSuffix(a.ID, "/"+a.Name)}}.Encode()
	default:
		return "/fleet"
	}
}
