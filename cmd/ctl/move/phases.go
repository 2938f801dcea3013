package move

import (
	"slices"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/mover"
)

// stages returns the phases of a successful move (docs/design/mover.md, "Phases"), and marks how
// far this move has come. For a failed or rolled-back move, the counts determine how far it came.
func stages(m *v1alpha1.Move) []kit.Stage {
	path := []mover.Phase{
		mover.PhasePreflight, mover.PhasePausing, mover.PhaseAwaitingAcks, mover.PhasePlanned,
		mover.PhaseCreating, mover.PhaseVerified, mover.PhaseDeleting, mover.PhaseResuming,
	}
	if m.Spec.DryRun {
		path = []mover.Phase{mover.PhasePreflight, mover.PhasePlanned}
	}
	n, sign, as := slices.Index(path, m.Status.Phase)+1, "▶", kit.ToneOf(string(m.Status.Phase)).Style()
	switch c := m.Status.Counts; {
	case n > 0 || m.Status.Phase == "" || m.Status.Phase == mover.PhasePending:
	case m.Status.Phase == mover.PhaseSucceeded:
		n, sign = len(path), "✓"
	default:
		last := mover.PhasePreflight
		switch {
		case c.ToDelete > 0:
			last = mover.PhaseCreating
		case c.Acknowledged > 0:
			last = mover.PhaseAwaitingAcks
		case c.Objects > 0, c.Clusters > 0: // set when the preflight has passed
			last = mover.PhasePausing
		}
		if m.Spec.DryRun && last != mover.PhasePreflight {
			last = mover.PhasePlanned // a dry run pauses nothing
		}
		n, sign = slices.Index(path, last)+1, "✗"
	}
	out := kit.Stages(path, n, sign, as)
	for i := range out {
		out[i].Return = path[i] == mover.PhaseVerified
	}
	return out
}
