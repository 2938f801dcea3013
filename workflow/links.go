package workflow

import (
	"strconv"

	"scute.dev/aggregate"
)

// The kinds of keys by which events refer to their causes.
const (
	linkRun      = "run"     // the run can continue
	linkClaim    = "claim"   // a process claimed the run
	linkStop     = "stop"    // the verdict on the run
	linkEnd      = "end"     // something that the end of the run waited for
	linkStage    = "stage"   // a task of a stage ended
	linkAttempt  = "attempt" // an attempt at a task started
	linkNext     = "next"    // what causes the next attempt at a task
	linkQuestion = "asked"   // a task waits for an operator
	linkDecided  = "decided" // an operator's decision about a task
	linkDone     = "done"    // a task ended
	linkFailed   = "failed"  // a failure that calls handlers
	linkExpired  = "late"    // an edge of a task timed out
	linkUndo     = "undo"    // an attempt to undo a step started
	linkUndone   = "undone"  // what causes the next attempt to undo
	linkHandler  = "handler" // a failure handler started
)

func runKey(what string) aggregate.Key { return aggregate.Key{Kind: what} }

func keys(of ...aggregate.Key) []aggregate.Key { return of }

// Links returns the links of e to other events of the run. s is the state before e. Two events have
// no cause: a request of an operator, and the claim of a run that another process had claimed
// before.
func Links(s *State, e Event) aggregate.Links {
	task := func(what string) aggregate.Key { return aggregate.Key{Kind: what, Name: e.task()} }
	switch e := e.(type) {
	case TaskStarted:
		return aggregate.Links{Keys: keys(task(linkAttempt)), CauseKeys: s.linksOfStart(e.Task)}
	case UndoRecorded, Progressed:
		return aggregate.Links{CauseKeys: keys(task(linkAttempt))}
	case AttemptFailed, StepSucceeded:
		return aggregate.Links{Keys: keys(task(linkNext)), CauseKeys: keys(task(linkAttempt), task(linkQuestion))}
	case TaskSucceeded:
		return aggregate.Links{Keys: s.linksOfEnd(e.Task), CauseKeys: keys(task(linkAttempt))}
	case TaskFailed:
		return aggregate.Links{Keys: append(s.linksOfEnd(e.Task), task(linkFailed)), CauseKeys: keys(task(linkAttempt), task(linkQuestion))}
	case TaskPaused:
		return s.linksOfPause(e)
	case TaskSkipped:
		return aggregate.Links{Keys: s.linksOfEnd(e.Task), CauseKeys: s.linksOfSkip(e.Task)}
	case TaskInterrupted:
		return aggregate.Links{Keys: keys(runKey(linkEnd)), CauseKeys: keys(runKey(linkStop))}
	case EdgeExpired:
		return aggregate.Links{Keys: keys(task(linkExpired)), CauseKeys: keys(aggregate.Key{Kind: linkAttempt, Name: e.Need})}
	case TaskReleased:
		return aggregate.Links{Keys: keys(task(linkNext))}
	case Decided:
		return aggregate.Links{Keys: s.linksOfDecision(e)}
	case UndoStarted, UndoAttemptFailed, Undone, UndoFailed:
		return linksOfUndo(e, task)
	default:
		return linksOfRun(s, e)
	}
}

func linksOfRun(s *State, e Event) aggregate.Links {
	switch e := e.(type) {
	case Started, Resumed, Migrated:
		return aggregate.Links{Keys: keys(runKey(linkRun), runKey(linkEnd))}
	case Verified:
		return aggregate.Links{Keys: keys(runKey(linkRun), runKey(linkEnd)), CauseKeys: keys(runKey(linkRun))}
	case Claimed:
		l := aggregate.Links{Keys: keys(runKey(linkClaim))}
		if s.Holder == "" {
			l.CauseKeys = keys(runKey(linkRun))
		}
		return l
	case Stranded:
		return aggregate.Links{CauseKeys: keys(runKey(linkClaim))}
	case Aborted:
		return linksOfStop(e.Task, e.Cause)
	case RollbackStarted:
		return linksOfStop(e.Task, e.Cause)
	case HandlerStarted:
		of := runKey(linkStop)
		if e.Task != "" {
			of = aggregate.Key{Kind: linkFailed, Name: e.Task}
		}
		return aggregate.Links{Keys: keys(aggregate.Key{Kind: linkHandler, Name: e.Handler + "/" + e.Task}), CauseKeys: keys(of)}
	case HandlerEnded:
		return aggregate.Links{Keys: keys(runKey(linkEnd)), CauseKeys: keys(aggregate.Key{Kind: linkHandler, Name: e.Handler + "/" + e.Task})}
	case Ended:
		return aggregate.Links{CauseKeys: keys(runKey(linkEnd))}
	default:
		return aggregate.Links{}
	}
}

// linksOfStop links a verdict on the run to its cause: a failure, a decision, or the request that
// set the deadline.
func linksOfStop(task string, cause Cause) aggregate.Links {
	l := aggregate.Links{Keys: keys(runKey(linkStop), runKey(linkEnd))}
	switch {
	case cause == CauseOperator && task != "":
		l.CauseKeys = keys(aggregate.Key{Kind: linkDecided, Name: task})
	case cause == CauseDeadline:
		l.CauseKeys = keys(runKey(linkRun))
	case task != "":
		l.CauseKeys = keys(aggregate.Key{Kind: linkFailed, Name: task})
	}
	return l
}

func linksOfUndo(e Event, task func(string) aggregate.Key) aggregate.Links {
	begins := keys(runKey(linkStop), task(linkUndone))
	switch e := e.(type) {
	case UndoStarted:
		if e.Release {
			begins = append(begins, runKey(linkEnd))
		}
		return aggregate.Links{Keys: keys(task(linkUndo)), CauseKeys: begins}
	case UndoAttemptFailed:
		return aggregate.Links{Keys: keys(task(linkUndone)), CauseKeys: keys(task(linkUndo))}
	case Undone:
		l := aggregate.Links{Keys: keys(task(linkUndone), runKey(linkEnd)), CauseKeys: keys(task(linkUndo))}
		if e.NothingReason != "" {
			l.CauseKeys = begins
		}
		return l
	default:
		return aggregate.Links{Keys: keys(task(linkFailed)), CauseKeys: keys(task(linkUndo))}
	}
}

// linksOfStart returns the possible causes of an attempt. The first attempt is caused by the last
// satisfied need or by the last task of an earlier stage. A later attempt is caused by the end of
// the previous attempt, or by a decision.
func (s *State) linksOfStart(task string) []aggregate.Key {
	of := keys(runKey(linkRun), aggregate.Key{Kind: linkNext, Name: task})
	i, ok := s.index(task)
	if !ok {
		return of
	}
	first := s.tasks[i].startedAt.IsZero()
	for n, e := range s.tasks[i].edges {
		if need := s.def[i].Needs[n]; e.state == edgeSatisfied && (first || !need.Optional) {
			of = append(of, aggregate.Key{Kind: linkDone, Name: need.Task})
		}
	}
	for stage := StagePre; stage < s.def[i].Stage; stage++ {
		of = append(of, stageKey(stage))
	}
	return of
}

func stageKey(stage Stage) aggregate.Key {
	return aggregate.Key{Kind: linkStage, Name: strconv.Itoa(int(stage))}
}

func (s *State) linksOfEnd(task string) []aggregate.Key {
	is := keys(runKey(linkEnd), aggregate.Key{Kind: linkDone, Name: task})
	if i, ok := s.index(task); ok {
		is = append(is, stageKey(s.def[i].Stage))
	}
	return is
}

func (s *State) linksOfSkip(task string) []aggregate.Key {
	of := keys(aggregate.Key{Kind: linkExpired, Name: task})
	if i, ok := s.index(task); ok {
		for n, e := range s.tasks[i].edges {
			if e.state == edgeUnsatisfiable {
				of = append(of, aggregate.Key{Kind: linkDone, Name: s.def[i].Needs[n].Task})
			}
		}
	}
	return of
}

// linksOfPause returns the links of a pause. A hold has no cause, because an operator requested it.
func (s *State) linksOfPause(e TaskPaused) aggregate.Links {
	l := aggregate.Links{Keys: keys(aggregate.Key{Kind: linkQuestion, Name: e.Task})}
	if e.Reason == ReasonFailed {
		l.Keys = append(l.Keys, aggregate.Key{Kind: linkFailed, Name: e.Task})
	}
	if e.Reason != ReasonHeld {
		l.CauseKeys = keys(aggregate.Key{Kind: linkAttempt, Name: e.Task})
	}
	return l
}

func (s *State) linksOfDecision(e Decided) []aggregate.Key {
	is := keys(aggregate.Key{Kind: linkDecided, Name: e.Task}, aggregate.Key{Kind: linkNext, Name: e.Task},
		aggregate.Key{Kind: linkUndone, Name: e.Task}, runKey(linkEnd))
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
