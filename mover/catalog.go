package mover

import "scute.dev/eventlog"

// NewCatalog returns the event types of a move.
func NewCatalog() *eventlog.Catalog[Event] {
	return eventlog.NewCatalog(eventlog.KindMove,
		eventlog.Define[Event, Requested]("requested", 1),
		eventlog.Define[Event, LogLost]("log-lost", 1),
		eventlog.Define[Event, TraceMissing]("trace-missing", 1),
		eventlog.Define[Event, Resolved]("resolved", 1),
		eventlog.Define[Event, Rebuilt]("rebuilt", 1),
		eventlog.Define[Event, TargetAbandoned]("target-abandoned", 1),
		eventlog.Define[Event, Abandoned]("abandoned", 1),
		eventlog.Define[Event, CreateStarted]("create-started", 1),
		eventlog.Define[Event, Claimed]("claimed", 1),
		eventlog.Define[Event, PreflightPassed]("preflight-passed", 1),
		eventlog.Define[Event, Refused]("refused", 1),
		eventlog.Define[Event, BaselineTaken]("baseline-taken", 1),
		eventlog.Define[Event, PauseIntended]("pause-intended", 1),
		eventlog.Define[Event, Paused]("paused", 1),
		eventlog.Define[Event, Acknowledged]("acknowledged", 1),
		eventlog.Define[Event, Waiting]("waiting", 1),
		eventlog.Define[Event, AllAcknowledged]("all-acknowledged", 1),
		eventlog.Define[Event, PlanDrafted]("plan-drafted", 1),
		eventlog.Define[Event, Planned]("planned", 1),
		eventlog.Define[Event, Created]("created", 1),
		eventlog.Define[Event, AllCreated]("all-created", 1),
		eventlog.Define[Event, Verified]("verified", 1),
		eventlog.Define[Event, Deleted]("deleted", 1),
		eventlog.Define[Event, SourceEmptied]("source-emptied", 1),
		eventlog.Define[Event, PausesRestored]("pauses-restored", 1),
		eventlog.Define[Event, Resumed]("resumed", 1),
		eventlog.Define[Event, Succeeded]("succeeded", 1),
		eventlog.Define[Event, AbortRequested]("abort-requested", 1),
		eventlog.Define[Event, AbortRefused]("abort-refused", 1),
		eventlog.Define[Event, TransientFailure]("transient-failure", 1),
		eventlog.Define[Event, Failed]("failed", 1),
		eventlog.Define[Event, RollbackStarted]("rollback-started", 1),
		eventlog.Define[Event, Removed]("removed", 1),
		eventlog.Define[Event, TargetCleared]("target-cleared", 1),
		eventlog.Define[Event, RolledBack]("rolled-back", 1),
	)
}
