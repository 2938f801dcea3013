package move

import (
	"fmt"
	"slices"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/mover"
)

// Documents returns the move.
func (f *Fold) Documents(k *kit.Kit) []kit.Document {
	m := f.Resource()
	d := kit.Document{
		Kind: "move", Namespace: m.Namespace, Name: m.Name, ID: f.ID, Phase: string(m.Status.Phase), Message: m.Status.Message, Next: m.Status.Next,
		Progress: progress(m), Began: "since", Since: f.State.PhaseSince, Commands: Hints(k, m), Actions: Actions(f.ID, m),
	}
	switch {
	case f.State.Finished():
		d.End(m.Status.FinishedAt)
	case m.Status.Stranded, m.Status.Phase == mover.PhaseFailed, m.Status.Phase == mover.PhaseStranded, f.State.TransientFailure.Message != "":
		d.State = kit.Waiting
	}
	return []kit.Document{d}
}

func progress(m *v1alpha1.Move) string {
	c := m.Status.Counts
	if c.ToDelete == 0 {
		return fmt.Sprintf("%d objects", c.Objects)
	}
	return fmt.Sprintf("%d/%d created, %d/%d deleted", c.Created, c.Objects, c.Deleted, c.ToDelete)
}

// Hints returns the commands about a move, each with its effect.
func Hints(k *kit.Kit, m *v1alpha1.Move) []string {
	line := func(verb, effect string) string { return k.Hint(m.Namespace, verb, "move", m.Name) + " " + effect }
	lines := []string{line("describe", "shows what happened")}
	if m.Status.FinishedAt != nil {
		return lines
	}
	lines = append(lines, line("watch", "follows it to its end"))
	if m.Status.Phase == mover.PhaseStranded {
		return append(lines, line("decide", "resolves it"))
	}
	if !slices.Contains([]mover.Phase{mover.PhaseVerified, mover.PhaseDeleting, mover.PhaseResuming}, m.Status.Phase) {
		lines = append(lines, line("abort", "rolls it back"))
	}
	return lines
}

// Actions returns what users can do with a move now.
func Actions(id string, m *v1alpha1.Move) []kit.Action {
	if m.Status.FinishedAt != nil || slices.Contains([]mover.Phase{
		mover.PhaseVerified, mover.PhaseDeleting, mover.PhaseResuming, mover.PhaseRollingBack, mover.PhaseStranded,
	}, m.Status.Phase) {
		return nil
	}
	return []kit.Action{{Do: "abort", Kind: "move", Namespace: m.Namespace, Name: m.Name, ID: id}}
}

// Err returns nil: Apply returns each error.
func (*Fold) Err() error { return nil }

// Object returns the Move.
func (f *Fold) Object() (name string, object any) { return "move", f.Resource() }

// Content returns the state of the move.
func (f *Fold) Content() any { return &f.State }

// Describe returns the description of the move.
func (f *Fold) Describe(v kit.View) []string { return Describe(v, f.Resource()) }
