package workflow

import "scute.dev/eventlog"

// NewCatalog returns the catalog of run events.
func NewCatalog() *eventlog.Catalog[Event] {
	return eventlog.NewCatalog(eventlog.KindRun,
		eventlog.Define[Event, Defined]("defined", 1),
		eventlog.Define[Event, Started]("started", 1),
		eventlog.Define[Event, Claimed]("claimed", 1),
		eventlog.Define[Event, Stranded]("stranded", 1),
		eventlog.Define[Event, Paused]("paused", 1),
		eventlog.Define[Event, Resumed]("resumed", 1),
		eventlog.Define[Event, Verified]("verified", 1),
		eventlog.Define[Event, Aborted]("aborted", 1),
		eventlog.Define[Event, RollbackStarted]("rollback-started", 1),
		eventlog.Define[Event, Ended]("ended", 1),
		eventlog.Define[Event, Migrated]("migrated", 1),
		eventlog.Define[Event, TaskStarted]("task-started", 1),
		eventlog.Define[Event, UndoRecorded]("undo-recorded", 1),
		eventlog.Define[Event, Progressed]("progressed", 1),
		eventlog.Define[Event, AttemptFailed]("attempt-failed", 1),
		eventlog.Define[Event, StepSucceeded]("step-succeeded", 1),
		eventlog.Define[Event, TaskSucceeded]("task-succeeded", 1),
		eventlog.Define[Event, TaskFailed]("task-failed", 1),
		eventlog.Define[Event, TaskPaused]("task-paused", 1),
		eventlog.Define[Event, TaskSkipped]("task-skipped", 1),
		eventlog.Define[Event, TaskInterrupted]("task-interrupted", 1),
		eventlog.Define[Event, EdgeExpired]("edge-expired", 1),
		eventlog.Define[Event, TaskReleased]("task-released", 1),
		eventlog.Define[Event, Decided]("decided", 1),
		eventlog.Define[Event, UndoStarted]("undo-started", 1),
		eventlog.Define[Event, UndoAttemptFailed]("undo-attempt-failed", 1),
		eventlog.Define[Event, Undone]("undone", 1),
		eventlog.Define[Event, UndoFailed]("undo-failed", 1),
		eventlog.Define[Event, HandlerStarted]("handler-started", 1),
		eventlog.Define[Event, HandlerEnded]("handler-ended", 1),
	)
}
