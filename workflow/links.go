package workflow

import (
	"strconv"

	"scute.dev/aggregate"
)

// What the keys of events name.
const (
	linkRun     = "run"     // what lets the run as a whole continue
	linkClaim   = "claim"   // of a process
	linkStop    = "stop"    // the verdict on the run
	linkEnd     = "end"     // what the end of the run waited for
	linkStage   = "stage"   // the end of a task of a stage
	linkAttempt = "attempt" // of a task
	linkNext    = "next"    // what the next attempt of a task follows from
	linkAsked   = "asked"   // the question about a task
	linkDecided = "decided" // what an operator decided about a task
	linkDone    = "done"    // the end of a task
	linkFailed  = "failed"  // what the error channel is called for
	linkLate    = "late"    // a need of a task that ran out of time
	linkUndo    = "undo"    // an attempt to take a step of a task back
	linkUndone  = "undone"  // what the next attempt at that follows from
	linkHandler = "handler" // of the error channel
)

func about(what string) aggregate.Key { return aggregate.Key{What: what} }

func keys(of ...aggregate.Key) []aggregate.Key { return of }

// Links relate a fact to others of the run. s is the state before it. What an operator asks for follows from nothing, and what a
// process claims neither, once another one had it.
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

// linksOfRun are those of a fact about the run as a whole.
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

// linksOfStop are those of a verdict on the run: what failed, or was decided, or the request, which set the deadline.
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

// linksOfUndo are those of a fact about taking a step back.
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

// linksOfStart are what an attempt at a task may follow from. The first one follows from the last of the needs that are satisfied,
// or the last task of an earlier stage; the next one from how the one before ended. Either may follow from a decision.
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

// linksOfEnd are the keys of the end of a task.
func (s *State) linksOfEnd(task string) []aggregate.Key {
	is := keys(about(linkEnd), aggregate.Key{What: linkDone, Name: task})
	if i, ok := s.index(task); ok {
		is = append(is, stageKey(s.def[i].Stage))
	}
	return is
}

// linksOfSkip are what keeps a task from ever starting.
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

// linksOfPause are those of a task that waits for an operator, who may have asked for it.
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

// linksOfDecision are the keys of what an operator decided.
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
