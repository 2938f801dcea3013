package move

import (
	"cmp"
	"slices"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/mover"
)

// Path returns the phases of a successful move (docs/design/mover.md, "Phases").
func Path(m *v1alpha1.Move) []mover.Phase {
	if m.Spec.DryRun {
		return []mover.Phase{mover.PhasePreflight, mover.PhasePlanned}
	}
	return []mover.Phase{
		mover.PhasePreflight, mover.PhasePausing, mover.PhaseAwaitingAcks, mover.PhasePlanned,
		mover.PhaseCreating, mover.PhaseVerified, mover.PhaseDeleting, mover.PhaseResuming,
	}
}

// Reached returns how many phases of the path a move has entered, and whether it is still in the
// last of these phases. For a move whose phase is not on the path, it derives the number from the
// counts.
func Reached(m *v1alpha1.Move, path []mover.Phase) (n int, there bool) {
	if i := slices.Index(path, m.Status.Phase); i >= 0 {
		return i + 1, true
	}
	last := mover.PhasePreflight
	switch c := m.Status.Counts; {
	case m.Status.Phase == mover.PhaseSucceeded:
		return len(path), false
	case m.Status.Phase == "" || m.Status.Phase == mover.PhasePending:
		return 0, false
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
	return slices.Index(path, last) + 1, false
}

func style(p mover.Phase) cli.Style {
	switch p {
	case mover.PhaseSucceeded:
		return cli.Green
	case mover.PhaseFailed:
		return cli.Red
	case mover.PhaseRollingBack, mover.PhaseRolledBack:
		return cli.Yellow
	default:
		return cli.Cyan
	}
}

// phase returns the colored phase of a Move; "Pending" if no daemon has started it.
func (v output) phase(m *v1alpha1.Move) string {
	p := cmp.Or(m.Status.Phase, mover.PhasePending)
	return v.Paint.Text(style(p), string(p))
}

// bar returns a line with all phases: done, in progress, pending.
func (v output) bar(m *v1alpha1.Move) string {
	phases := Path(m)
	n, there := Reached(m, phases)
	names := make([]string, len(phases))
	for i, phase := range phases {
		names[i] = string(phase)
	}
	return v.Path(names, n, func(i int) (string, cli.Style) {
		switch {
		case i < n-1, i == n-1 && m.Status.Phase == mover.PhaseSucceeded:
			return "✓", cli.Green
		case i == n-1 && there:
			return "▶", style(m.Status.Phase)
		case i == n-1:
			return "✗", style(m.Status.Phase)
		default:
			return "·", cli.Dim
		}
	})
}
