package workflow

// runAgain says that a task that had ended runs again, or that it has ended again. Until then nothing starts that comes after
// it, also behind tasks that are done and stay so.
func (s *State) runAgain(i int, again bool) {
	t := &s.tasks[i]
	was := t.unsettledAbove()
	t.again = again
	if is := t.unsettledAbove(); is != was {
		s.tellBelow(i, is)
	}
}

// unsettledAbove says that a task runs again, or something that it comes after.
func (t *taskState) unsettledAbove() bool { return t.again || t.behind > 0 }

// tellBelow tells the edges that hang on a task.
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
