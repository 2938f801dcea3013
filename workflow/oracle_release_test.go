package workflow

import (
	"fmt"
	"maps"
	"slices"

	"scute.dev/api/v1alpha1"
)

// This file has the oracle's rules for holds that a task releases before the run ends.

// oracleRelease is a step that releases a hold.
type oracleRelease struct{ hold, task, step int }

func (o *oracle) releases() []oracleRelease {
	var list []oracleRelease
	for i := range o.def {
		for n, step := range o.def[i].Steps {
			if step.Releases != "" {
				list = append(list, oracleRelease{o.at[step.Releases], i, n})
			}
		}
	}
	return list
}

func (o *oracle) releaseEnded(r oracleRelease) bool {
	t := &o.tasks[r.task]
	return t.steps[r.step].done || t.phase == taskIgnored && t.ignoredAt == r.step
}

// current returns the current step of a task.
func (o *oracle) current(i int) int {
	for n, step := range o.tasks[i].steps {
		if !step.done || o.def[i].Steps[n].Holds && step.started && step.undone {
			return n
		}
	}
	return len(o.tasks[i].steps) - 1
}

// isNeeded reports whether task i comes after task above. With required, it reports whether it could not have started
// otherwise: a skipped task in between, or a user's decision before it started, would allow that.
func (o *oracle) isNeeded(i, above int, required bool) bool {
	for n, need := range o.def[i].Needs {
		p := o.at[need.Task]
		begun := o.tasks[p].phase != taskSkipped && o.tasks[p].steps[0].started
		if !(required && (need.Optional || o.tasks[i].expired[n] || !begun)) && (p == above || o.isNeeded(p, above, required)) {
			return true
		}
	}
	return false
}

// rerun returns the tasks that run again on resume: failed and interrupted tasks, tasks that always run, and tasks
// whose hold was given back, unless it was released and no task in between needs it. Releases of holds that run again
// are included.
func (o *oracle) rerun() []string {
	listed := make(map[int]bool)
	for i := range o.tasks {
		t := &o.tasks[i]
		again := t.phase == taskFailed && t.verdict == v1alpha1.VerdictBlocking || t.phase == taskInterrupted
		if t.phase == taskSucceeded {
			again = o.def[i].Always
			for n, step := range t.steps {
				ended := n == o.def[i].OwnStep() && slices.ContainsFunc(o.releases(), func(r oracleRelease) bool { return r.hold == i && o.releaseEnded(r) })
				again = again || (o.def[i].Steps[n].Holds && step.undone || step.releasing) && !ended
			}
		}
		if again {
			listed[i] = true
		}
	}
	return o.withHolds(listed)
}

// withHolds adds the holds and releases that run again because of others.
func (o *oracle) withHolds(listed map[int]bool) []string {
	runs := maps.Clone(listed)
	for i := range o.tasks {
		runs[i] = runs[i] || !o.isFinal(i)
	}
	for changed := true; changed; {
		changed = false
		add := func(i int, list bool) {
			if !runs[i] {
				runs[i], changed = true, true
				if list {
					listed[i] = true
				}
			}
		}
		for _, r := range o.releases() {
			if !o.releaseEnded(r) || o.isFinal(r.hold) && o.tasks[r.hold].phase != taskSucceeded {
				continue
			}
			for u := range o.tasks {
				if runs[u] && (u == r.hold || o.isNeeded(u, r.hold, false) && o.isNeeded(r.task, u, false)) {
					add(r.hold, true)
					add(r.task, true)
				}
			}
		}
		for i := range o.def {
			for _, need := range o.def[i].Needs {
				if o.tasks[i].phase == taskSkipped && runs[o.at[need.Task]] {
					add(i, false)
				}
			}
		}
	}
	var names []string
	for _, i := range slices.Sorted(maps.Keys(listed)) {
		names = append(names, o.def[i].Name)
	}
	return names
}

// resetHolds records which steps run again.
func (o *oracle) resetHolds(names []string) {
	for _, r := range o.releases() {
		hold, release := slices.Contains(names, o.def[r.hold].Name), slices.Contains(names, o.def[r.task].Name)
		if (hold || !o.isFinal(r.hold)) && (release || !o.isFinal(r.task)) {
			o.tasks[r.task].steps[r.step].done = false
			if hold {
				o.tasks[r.hold].steps[o.def[r.hold].OwnStep()].done = false
			}
		}
	}
}

// resetReleases records that what released a hold must run again after the hold is acquired again.
func (o *oracle) resetReleases(hold int, step string) {
	for _, r := range o.releases() {
		if r.hold == hold && step == "" && o.tasks[hold].rerunning && o.releaseEnded(r) {
			if o.tasks[r.task].steps[r.step].done = false; o.isFinal(r.task) {
				o.reopen(r.task, false)
			}
		}
	}
}

// recordRelease records what a finished step has released, whatever the engine makes of it.
func (o *oracle) recordRelease(task, step string) {
	for _, r := range o.releases() {
		if t := &o.tasks[r.task]; o.def[r.task].Name == task && o.def[r.task].Steps[r.step].Name == step {
			o.tasks[r.hold].held, t.released = false, true
		}
	}
}

// checkProtected returns why a task must not start while some holds are held or released.
func (o *oracle) checkProtected(u int) string {
	if o.tasks[u].phase == taskRetrying {
		return "" // it has already started
	}
	releases := o.releases()
	for h := range o.def {
		t, own := &o.tasks[h], o.def[h].OwnStep()
		if !o.def[h].Steps[own].Holds || t.phase != taskSucceeded || !t.steps[own].started || t.held || !o.isNeeded(u, h, true) {
			continue
		}
		without := func(r oracleRelease) bool { // it does not need the hold, or may run without it
			return r.hold == h && (o.releaseEnded(r) || r.task == u || o.tasks[r.task].released && !o.isNeeded(r.task, u, false))
		}
		if !slices.ContainsFunc(releases, without) {
			return fmt.Sprintf("started without what %s holds", o.def[h].Name)
		}
	}
	for _, r := range releases {
		t := &o.tasks[r.task]
		if t.released && t.phase == taskSucceeded && o.tasks[r.hold].held && o.isNeeded(u, r.task, true) && o.isNeeded(r.task, r.hold, true) {
			return fmt.Sprintf("started while %s holds again what %s has ended", o.def[r.hold].Name, o.def[r.task].Name)
		}
		for j := range o.tasks {
			if p := o.tasks[j].phase; u == r.hold && o.tasks[u].rerunning && (p == taskRunning || p == taskRetrying) && (j == r.task || o.isNeeded(j, r.task, false)) {
				return fmt.Sprintf("holds again while %s is in flight", o.def[j].Name)
			}
		}
	}
	return ""
}
