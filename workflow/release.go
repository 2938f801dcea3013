package workflow

import (
	"math/big"
	"slices"
	"time"
)

// release is a step that releases the hold of another task. Only tasks between that task and the
// release need the hold.
type release struct{ hold, task, step int }

// releases returns the releases of a definition, grouped by the task that has the hold.
func releases(tasks []Task, byName map[string]int) map[int][]release {
	var list map[int][]release
	for i := range tasks {
		for n := range tasks[i].Steps {
			hold, ok := byName[tasks[i].Steps[n].Releases]
			if !ok || tasks[i].Steps[n].removed || !tasks[hold].Steps[tasks[hold].OwnStep()].Holds {
				continue
			}
			if list == nil {
				list = make(map[int][]release)
			}
			list[hold] = append(list[hold], release{hold: hold, task: i, step: n})
		}
	}
	return list
}

// releaseEnded reports whether a release has ended. A release whose failure was ignored counts as
// ended.
func (s *State) releaseEnded(r release) bool {
	t := &s.tasks[r.task]
	return t.steps[r.step].done || t.phase == taskIgnored && t.step == r.step
}

func (s *State) released(hold int) bool { return slices.ContainsFunc(s.releases[hold], s.releaseEnded) }

// endedReleases returns the releases that have ended, if their hold can still be acquired again.
func (s *State) endedReleases() []release {
	var list []release
	for i := 0; len(s.releases) > 0 && i < len(s.tasks); i++ {
		if hold := &s.tasks[i]; hold.removed || hold.ended() && hold.phase != taskSucceeded {
			continue
		}
		for _, r := range s.releases[i] {
			if s.releaseEnded(r) {
				list = append(list, r)
			}
		}
	}
	return list
}

// neededHolds returns the tasks that must rerun in addition to the tasks in again. These are tasks
// whose released hold is still needed by a task before the release, and all releases of holds that
// are acquired again.
func (s *State) neededHolds(again map[int]bool) []int {
	over := s.endedReleases()
	if len(over) == 0 {
		return nil
	}
	between := s.betweenReleases(over)
	byHold := make(map[int][]int)
	for k, r := range over {
		byHold[r.hold] = append(byHold[r.hold], k)
	}
	var added, queue []int
	runs := make([]bool, len(s.tasks))
	run := func(i int) {
		if !runs[i] {
			runs[i] = true
			queue = append(queue, i)
		}
	}
	add := func(i int) {
		if !runs[i] && !s.tasks[i].removed {
			added = append(added, i)
			run(i)
		}
	}
	for i := range s.tasks {
		if again[i] || !s.tasks[i].ended() {
			run(i)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		i := queue[0]
		for _, k := range byHold[i] {
			add(over[k].task)
		}
		for k := range over {
			if between[i].Bit(k) == 1 {
				add(over[k].hold)
			}
		}
		for _, c := range s.children[i] {
			if s.tasks[c.task].phase == taskSkipped { // the task is evaluated again
				run(c.task)
			}
		}
	}
	slices.Sort(added)
	return added
}

// betweenReleases returns for each task a set of indices of list. It contains the releases after
// the task whose hold is before the task.
func (s *State) betweenReleases(list []release) []big.Int {
	parents := make([][]int, len(s.tasks))
	for i := range s.tasks {
		for _, e := range s.tasks[i].edges {
			parents[i] = append(parents[i], e.parent)
		}
	}
	order, _ := topologicalOrder(parents)
	below, above := make([]big.Int, len(s.tasks)), make([]big.Int, len(s.tasks))
	holds, ends := make([]big.Int, len(s.tasks)), make([]big.Int, len(s.tasks))
	var gone big.Int // releases that the definition no longer has: all tasks after the hold need it
	for k, r := range list {
		holds[r.hold].SetBit(&holds[r.hold], k, 1)
		ends[r.task].SetBit(&ends[r.task], k, 1)
		if s.tasks[r.task].removed {
			gone.SetBit(&gone, k, 1)
		}
	}
	add := func(to *big.Int, sets ...*big.Int) {
		for _, set := range sets {
			to.Or(to, set)
		}
	}
	for _, i := range order {
		for _, p := range parents[i] {
			add(&below[i], &below[p], &holds[p])
		}
	}
	for _, i := range slices.Backward(order) {
		for _, p := range parents[i] {
			add(&above[p], &above[i], &ends[i])
		}
	}
	for i := range below {
		below[i].And(&below[i], above[i].Or(&above[i], &gone))
	}
	return below
}

func (s *State) resetHolds(names []string) {
	if len(s.releases) == 0 {
		return
	}
	again := make(map[int]bool, len(names))
	for _, name := range names {
		if i, ok := s.index(name); ok {
			again[i] = true
		}
	}
	for hold, list := range s.releases {
		for _, r := range list {
			if !again[r.task] && s.tasks[r.task].ended() || !again[hold] && s.tasks[hold].ended() {
				continue
			}
			if s.resetStep(r.task, r.step); again[hold] {
				s.tasks[hold].steps[s.def[hold].OwnStep()].done = false
			}
		}
	}
}

// resetStep makes the task perform a step again before the task continues.
func (s *State) resetStep(i, step int) {
	t := &s.tasks[i]
	if t.steps[step].done = false; t.phase == taskPending {
		t.step = s.firstStep(i)
	}
}

// resetReleases makes releases run again that have ended when their hold begins to be acquired
// again, because they released the earlier hold.
func (s *State) resetReleases(hold int, at time.Time) {
	for _, r := range s.releases[hold] {
		if t := &s.tasks[r.task]; s.releaseEnded(r) && !t.removed {
			if s.resetStep(r.task, r.step); t.ended() {
				s.reopen(r.task, at)
			}
		}
	}
}

// reacquireHolds resets the released holds that tasks still need, for a run that migrates without a
// resume.
func (s *State) reacquireHolds(at time.Time) {
	list := s.neededHolds(nil)
	names := make([]string, len(list))
	for n, i := range list {
		names[n] = s.def[i].Name
	}
	s.resetHolds(names)
	for _, i := range list {
		s.reopen(i, at)
	}
}

// recordReacquired records that undoing a release acquired the hold again, so the hold must be
// released again.
func (s *State) recordReacquired(i, step int) {
	hold, ok := s.index(s.def[i].Steps[step].Releases)
	if !ok || !s.def[hold].Steps[s.def[hold].OwnStep()].Holds || s.tasks[hold].settled {
		return
	}
	if own := &s.tasks[hold].steps[s.def[hold].OwnStep()]; own.started {
		own.undone = false
		s.holding.put(hold, true)
	}
}

// disturbs reports whether acquiring the task's hold again would affect tasks in flight after the
// release of the hold.
func (s *State) disturbs(i int) bool {
	if !s.tasks[i].rerunning || s.running.n+s.phaseCounts[taskRetrying] == 0 {
		return false
	}
	var queue []int
	seen := make(map[int]bool)
	visit := func(i int) {
		if !seen[i] {
			seen[i] = true
			queue = append(queue, i)
		}
	}
	for _, r := range s.releases[i] {
		visit(r.task)
	}
	for ; len(queue) > 0; queue = queue[1:] {
		if p := s.tasks[queue[0]].phase; p == taskRunning || p == taskRetrying {
			return true
		}
		for _, c := range s.children[queue[0]] {
			visit(c.task)
		}
	}
	return false
}
