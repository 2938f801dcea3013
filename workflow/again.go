package workflow

// setRerunning records that an ended task runs again, or that it has ended again. Until then no later task starts, even if all tasks in between have
// ended and do not run again.
func (s *State) setRerunning(i int, again bool) {
	t := &s.tasks[i]
	was := t.isBehind()
	t.rerunning = again
	if is := t.isBehind(); is != was {
		s.notifyDescendants(i, is)
	}
}

// isBehind reports whether the task or one of its ancestors runs again.
func (t *taskState) isBehind() bool { return t.rerunning || t.behind > 0 }

func (s *State) notifyDescendants(i int, behind bool) {
	for _, c := range s.children[i] {
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
	was := t.isBehind()
	if e.behind = behind; behind {
		t.behind++
	} else {
		t.behind--
	}
	if is := t.isBehind(); is != was {
		s.notifyDescendants(c.task, is)
		s.propagate(c.task)
	}
}
