package workflow

import (
	"strconv"

	"scute.dev/aggregate"
)

// The kinds of keys of events.
const (
	linkRun     = "run"     // the run can continue
	linkClaim   = "claim"   // the claim of a process
	linkStop    = "stop"    // the verdict on the run
	linkEnd     = "end"     // the end of the run waited for it
	linkStage   = "stage"   // the end of a task of a stage
	linkAttempt = "attempt" // an attempt at a task
	linkNext    = "next"    // the cause of the next attempt at a task
	linkAsked   = "asked"   // the question about a task
	linkDecided = "decided" // an operator's decision about a task
	linkDone    = "done"    // the end of a task
	linkFailed  = "failed"  // a failure that handlers are called for
	linkLate    = "late"    // a need of a task that timed out
	linkUndo    = "undo"    // an attempt to undo a step of a task
	linkUndone  = "undone"  // the cause of the next attempt to undo
	linkHandler = "handler" // a handler of failures
)

func about(what string) aggregate.Key { return aggregate.Key{What: what} }

func keys(of ...aggregate.Key) []aggregate.Key { return of }

// Links returns the links of an event to other events of the run. s is the state before it. An operator's request has no cause, and neither has a claim
// of a run that another process had claimed.
func Links(s *State, e Event) aggregate.Links {
	task := func(what string) aggregate.Key { return aggregate.Key{What: what, Name: taskOf(e)} }
	switch e := e.(type) {
	case TaskStarted:
		return aggregate.Links{Is: keys(task(linkAttempt)), Of: s.linksOfStart(e.Task)}
	case UndoRecorded, Progressed:
		return aggregate.Links{Of: keys(task(linkAttempt))}
	case AttemptFailed, StepSucceeded:
		return aggregate.Links{Is: keys(task(linkNext)), Of: keys(task(linkAttempt), task(linkAsked))}
	case TaskSucceeded:
		return aggregate.Links{Is: s.linksOfEnd(e.Task), Of: keys(task(linkAttempt))}
	case TaskFailed:
		return aggregate.Links{Is: append(s.linksOfEnd(e.Task), task(linkFailed)), Of: keys(task(linkAttempt), task(linkAsked))}
	case TaskPaused:
		return s.linksOfPause(e)
	case TaskSkipped:
		return aggregate.Links{Is: s.linksOfEnd(e.Task), Of: s.linksOfSkip(e.Task)}
	case TaskInterrupted:
		return aggregate.Links{Is: keys(about(linkEnd)), Of: keys(about(linkStop))}
	case EdgeExpired:
		return aggregate.Links{Is: keys(task(linkLate)), Of: keys(aggregate.Key{What: linkAttempt, Name: e.Need})}
	case TaskReleased:
		return aggregate.Links{Is: keys(task(linkNext))}
	case Decided:
		return aggregate.Links{Is: s.linksOfDecision(e)}
	case UndoStarted, UndoAttemptFailed, Undone, UndoFailed:
		return linksOfUndo(e, task)
	default:
		return linksOfRun(s, e)
	}
}

// linksOfRun returns the links of an event about the run.
func linksOfRun(s *State, e Event) aggregate.Links {
	switch e := e.(type) {
	case Started, Resumed, Migrated:
		return aggregate.Links{Is: keys(about(linkRun), about(linkEnd))}
	case Verified:
		return aggregate.Links{Is: keys(about(linkRun), about(linkEnd)), Of: keys(about(linkRun))}
	case Claimed:
		l := aggregate.Links{Is: keys(about(linkClaim))}
		if s.Holder == "" {
			l.Of = keys(about(linkRun))
		}
		return l
	case Stranded:
		return aggregate.Links{Of: keys(about(linkClaim))}
	case Aborted:
		return linksOfStop(e.Task, e.Cause)
	case RollbackStarted:
		return linksOfStop(e.Task, e.Cause)
	case HandlerStarted:
		of := about(linkStop)
		if e.Task != "" {
			of = aggregate.Key{What: linkFailed, Name: e.Task}
		}
		return aggregate.Links{Is: keys(aggregate.Key{What: linkHandler, Name: e.Handler + "/" + e.Task}), Of: keys(of)}
	case HandlerEnded:
		return aggregate.Links{Is: keys(about(linkEnd)), Of: keys(aggregate.Key{What: linkHandler, Name: e.Handler + "/" + e.Task})}
	case Ended:
		return aggregate.Links{Of: keys(about(linkEnd))}
	default:
		return aggregate.Links{}
	}
}

// linksOfStop returns the links of a verdict on the run: its cause is a failure, a decision, or the request, which set the deadline.
func linksOfStop(task string, cause Cause) aggregate.Links {
	l := aggregate.Links{Is: keys(about(linkStop), about(linkEnd))}
	switch {
	case cause == CauseOperator && task != "":
		l.Of = keys(aggregate.Key{What: linkDecided, Name: task})
	case cause == CauseDeadline:
		l.Of = keys(about(linkRun))
	case task != "":
		l.Of = keys(aggregate.Key{What: linkFailed, Name: task})
	}
	return l
}

// linksOfUndo returns the links of an event about an undo.
func linksOfUndo(e Event, task func(string) aggregate.Key) aggregate.Links {
	begins := keys(about(linkStop), task(linkUndone))
	switch e := e.(type) {
	case UndoStarted:
		if e.Release {
			begins = append(begins, about(linkEnd))
		}
		return aggregate.Links{Is: keys(task(linkUndo)), Of: begins}
	case UndoAttemptFailed:
		return aggregate.Links{Is: keys(task(linkUndone)), Of: keys(task(linkUndo))}
	case Undone:
		l := aggregate.Links{Is: keys(task(linkUndone), about(linkEnd)), Of: keys(task(linkUndo))}
		if e.Nothing != "" {
			l.Of = begins
		}
		return l
	default:
		return aggregate.Links{Is: keys(task(linkFailed)), Of: keys(task(linkUndo))}
	}
}

// linksOfStart returns the possible causes of an attempt at a task. The cause of the first attempt is the last satisfied need, or the last task of an
// earlier stage. The cause of a later attempt is the end of the attempt before. Either can be a decision.
func (s *State) linksOfStart(task string) []aggregate.Key {
	of := keys(about(linkRun), aggregate.Key{What: linkNext, Name: task})
	i, ok := s.index(task)
	if !ok {
		return of
	}
	first := s.tasks[i].startedAt.IsZero()
	for n, e := range s.tasks[i].edges {
		if need := s.def[i].Needs[n]; e.state == edgeGood && (first || !need.Optional) {
			of = append(of, aggregate.Key{What: linkDone, Name: need.Task})
		}
	}
	for stage := StagePre; stage < s.def[i].Stage; stage++ {
		of = append(of, stageKey(stage))
	}
	return of
}

func stageKey(stage Stage) aggregate.Key {
	return aggregate.Key{What: linkStage, Name: strconv.Itoa(int(stage))}
}

// linksOfEnd returns the keys of the end of a task.
func (s *State) linksOfEnd(task string) []aggregate.Key {
	is := keys(about(linkEnd), aggregate.Key{What: linkDone, Name: task})
	if i, ok := s.index(task); ok {
		is = append(is, stageKey(s.def[i].Stage))
	}
	return is
}

// linksOfSkip returns the keys of the events because of which a task can never start.
func (s *State) linksOfSkip(task string) []aggregate.Key {
	of := keys(aggregate.Key{What: linkLate, Name: task})
	if i, ok := s.index(task); ok {
		for n, e := range s.tasks[i].edges {
			if e.state == edgeBad {
				of = append(of, aggregate.Key{What: linkDone, Name: s.def[i].Needs[n].Task})
			}
		}
	}
	return of
}

// linksOfPause returns the links of the pause of a task, which an operator may have requested.
func (s *State) linksOfPause(e TaskPaused) aggregate.Links {
	l := aggregate.Links{Is: keys(aggregate.Key{What: linkAsked, Name: e.Task})}
	if e.Why == WhyFailed {
		l.Is = append(l.Is, aggregate.Key{What: linkFailed, Name: e.Task})
	}
	if e.Why != WhyHeld {
		l.Of = keys(aggregate.Key{What: linkAttempt, Name: e.Task})
	}
	return l
}

// linksOfDecision returns the keys of an operator's decision.
func (s *State) linksOfDecision(e Decided) []aggregate.Key {
	is := keys(aggregate.Key{What: linkDecided, Name: e.Task}, aggregate.Key{What: linkNext, Name: e.Task},
		aggregate.Key{What: linkUndone, Name: e.Task}, about(linkEnd))
	switch e.Action {
	case ActSucceed, ActIgnore, ActIgnoreChildren:
		if e.StepOnly {
			return is
		}
		is = append(is, s.linksOfEnd(e.Task)...)
	default:
	}
	return is
}
