package app

import (
	"maps"
	"slices"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
)

// The phases that metrics count, also if there is no object in a phase, because an absent series is not zero.

func movePhases() []v1alpha1.MovePhase {
	return []v1alpha1.MovePhase{
		mover.PhasePending, mover.PhasePreflight, mover.PhasePausing, mover.PhaseAwaitingAcks, mover.PhasePlanned, mover.PhaseCreating, mover.PhaseVerified,
		mover.PhaseDeleting, mover.PhaseResuming, mover.PhaseSucceeded, mover.PhaseRollingBack, mover.PhaseRolledBack, mover.PhaseFailed, mover.PhaseStranded,
	}
}

func runPhases() []v1alpha1.RunPhase {
	return []v1alpha1.RunPhase{
		v1alpha1.RunPending, v1alpha1.RunRunning, v1alpha1.RunPartiallyPaused, v1alpha1.RunPaused, v1alpha1.RunSucceeded, v1alpha1.RunDegraded,
		v1alpha1.RunAborted, v1alpha1.RunRollingBack, v1alpha1.RunRolledBack, v1alpha1.RunRollbackFailed, v1alpha1.RunFailed, v1alpha1.RunStranded,
	}
}

// remediationPhases returns the phases of unfinished remediations. Finished ones are not counted.
func remediationPhases() []v1alpha1.RemediationPhase {
	return []v1alpha1.RemediationPhase{
		v1alpha1.RemediationMarked, v1alpha1.RemediationWaiting, v1alpha1.RemediationHeld, v1alpha1.RemediationFrozen, v1alpha1.RemediationEscalating,
		v1alpha1.RemediationSurging, v1alpha1.RemediationReplacing, v1alpha1.RemediationRemoving, v1alpha1.RemediationCancelling, v1alpha1.RemediationFailed,
	}
}

func etcdProblems() []v1alpha1.EtcdProblemKind {
	return []v1alpha1.EtcdProblemKind{v1alpha1.EtcdCorrupt, v1alpha1.EtcdNoSpace, v1alpha1.EtcdNearQuota, v1alpha1.EtcdFragmented}
}

// byPhase calls fn for each of the phases, and then for other phases in counts.
func byPhase[P ~string](counts map[P]int, phases []P, fn func(phase string, n int)) {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(counts)), func(p P) bool { return slices.Contains(phases, p) })
	for _, phase := range slices.Concat(phases, others) {
		fn(string(phase), counts[phase])
	}
}
