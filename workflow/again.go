package workflow

// runAgain records that an ended task runs again, or that it has ended again. Until then no later task starts, even if all tasks in between have
// ended and do not run again.
func (s *State) runAgain(i int, again bool) {
	t := &s.tasks[i]
	was := t.unsettledAbove()
	t.again = again
	if is := t.unsettledAbove(); is != was {
		s.tellBelow(i, is)
	}
}

// unsettledAbove reports whether the task or one of its ancestors runs again.
func (t *taskState) unsettledAbove() bool { return t.again || t.behind > 0 }

// tellBelow updates the descendants of a task.
func (s *State) tellBelow(i int, behind bool) {
	for _, c := range s.kids[i] {
		if !behind || !s.tasks[c.task].edges[c.need].expired {
			s.setBehind(c, behind)
		}
	}
}

func (s *State) setBehind(c child, behind bool) {
	t := &s.tasks[c.task]
	e := &t.edges[c.need]
	if e.behind == behind {
		return
	}
	was := t.unsettledAbove()
	if e.behind = behind; behind {
		t.behind++
	} else {
		t.behind--
	}
	if is := t.unsettledAbove(); is != was {
		s.tellBelow(c.task, is)
		s.propagate(c.task)
	}
}
