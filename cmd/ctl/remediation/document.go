package remediation

import (
	"fmt"
	"slices"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/remediator"
)

// Documents returns the remediations of the owner's machines.
func (f *Fold) Documents(k *kit.Kit) (out []kit.Document) {
	for _, r := range f.Items() {
		d := kit.Document{
			Kind: "machine", Namespace: r.Namespace, Name: r.Name, ID: f.State.Owner.ID(), Phase: string(r.Status.Phase), Message: r.Status.Message, Next: r.Status.Next,
			Progress: r.Status.Decision, Began: "marked", Since: r.CreationTimestamp.Time, Commands: Hints(k, r), Actions: Actions(r),
		}
		switch {
		case !IsOpen(r):
			d.End(r.Status.FinishedAt)
		case slices.Contains([]v1alpha1.RemediationPhase{v1alpha1.RemediationFrozen, v1alpha1.RemediationHeld, v1alpha1.RemediationFailed}, r.Status.Phase):
			d.State = kit.Waiting
		}
		out = append(out, d)
	}
	return out
}

// Summary describes the owner's state in a few words.
func (f *Fold) Summary() string {
	usage := remediator.UsageOf(&f.State, nil)
	switch unhealthy := remediator.Total(usage.Unhealthy); {
	case remediator.Total(usage.Active) > 0:
		return fmt.Sprintf("in progress, %d marked", unhealthy)
	case unhealthy > 0:
		return fmt.Sprintf("%d marked", unhealthy)
	default:
		return "healthy"
	}
}

// Hints returns the commands about a remediation, each with its effect.
func Hints(k *kit.Kit, r *v1alpha1.SurgeRemediation) []string {
	line := func(verb, effect string) string {
		return k.Hint(r.Namespace, verb, "remediation", r.Name) + " " + effect
	}
	lines := []string{line("describe", "shows what happened")}
	if r.Status.Phase == v1alpha1.RemediationHeld || r.Spec.Abort {
		return append(lines, line("release", "lets scute act again"))
	}
	if IsOpen(r) {
		lines = append(lines, line("hold", "keeps the machine as it is"))
	}
	if inProgress(r.Status.Phase) {
		lines = append(lines, line("abort", "cancels the replacement"))
	}
	return lines
}

// Actions returns what users can do with a remediation now.
func Actions(r *v1alpha1.SurgeRemediation) []kit.Action {
	if !IsOpen(r) {
		return nil
	}
	action := func(do string) kit.Action {
		return kit.Action{Do: do, Kind: "remediation", Namespace: r.Namespace, Name: r.Name, ID: r.Status.RemediationID}
	}
	if r.Spec.Hold != nil || r.Spec.Abort {
		return []kit.Action{action("release")}
	}
	actions := []kit.Action{action("hold")}
	if inProgress(r.Status.Phase) {
		actions = append(actions, action("abort"))
	}
	return actions
}

// Err returns nil: Apply returns each error.
func (*Fold) Err() error { return nil }

// Object returns the remediations of the owner's machines.
func (f *Fold) Object() (name string, object any) { return "remediations", f.Items() }

// Content returns the owner's state.
func (f *Fold) Content() any { return &f.State }

// Describe returns the description of the owner with its remediations.
func (f *Fold) Describe(v kit.View) []string {
	o, list := f.State.Owner, f.Items()
	out := []string{v.Field("Owner", v.Paint.Text(cli.Bold, o.Kind+" "+o.Namespace+"/"+o.Name)), v.Field("Cluster", o.Cluster), ""}
	if len(list) == 0 {
		return append(out, "None of its machines is marked.")
	}
	return append(out, newNoun().Table(v, list, false, false)...)
}
