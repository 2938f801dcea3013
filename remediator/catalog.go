package remediator

import "scute.dev/eventlog"

// NewCatalog maps the facts of remediations to their types in the log.
func NewCatalog() *eventlog.Catalog[Event] {
	return eventlog.NewCatalog(eventlog.KindRemediation,
		eventlog.Define[Event, Registered]("registered", 1),
		eventlog.Define[Event, Claimed]("claimed", 1),
		eventlog.Define[Event, MachineMarked]("machine-marked", 1),
		eventlog.Define[Event, MachineMarkCleared]("machine-mark-cleared", 1),
		eventlog.Define[Event, Decided]("decided", 1),
		eventlog.Define[Event, HoldSet]("hold-set", 1),
		eventlog.Define[Event, HoldReleased]("hold-released", 1),
		eventlog.Define[Event, AbortRequested]("abort-requested", 1),
		eventlog.Define[Event, EscalationStarted]("escalation-started", 1),
		eventlog.Define[Event, EscalationEnded]("escalation-ended", 2),
		eventlog.Upcast[Event]("escalation-ended", 1, escalationEndedV1.v2),
		eventlog.Define[Event, NodeOutOfService]("node-out-of-service", 1),
		eventlog.Define[Event, NodeInService]("node-in-service", 1),
		eventlog.Define[Event, SurgeRequested]("surge-requested", 1),
		eventlog.Define[Event, HandedOver]("handed-over", 1),
		eventlog.Define[Event, ScaleRaised]("scale-raised", 1),
		eventlog.Define[Event, VictimSpared]("victim-spared", 1),
		eventlog.Define[Event, ReplacementObserved]("replacement-observed", 1),
		eventlog.Define[Event, ScaleRestored]("scale-restored", 1),
		eventlog.Define[Event, ReplacementReady]("replacement-ready", 1),
		eventlog.Define[Event, VictimDeleting]("victim-deleting", 1),
		eventlog.Define[Event, SurgeRelaxed]("surge-relaxed", 1),
		eventlog.Define[Event, DrainSkipped]("drain-skipped", 1),
		eventlog.Define[Event, VolumeDetachSkipped]("volume-detach-skipped", 1),
		eventlog.Define[Event, VictimGone]("victim-gone", 1),
		eventlog.Define[Event, SurgeConsumed]("surge-consumed", 1),
		eventlog.Define[Event, CancelStarted]("cancel-started", 1),
		eventlog.Define[Event, Frozen]("frozen", 1),
		eventlog.Define[Event, Thawed]("thawed", 1),
		eventlog.Define[Event, Succeeded]("succeeded", 1),
		eventlog.Define[Event, Cancelled]("cancelled", 1),
		eventlog.Define[Event, TransientFailure]("setback", 1),
		eventlog.Define[Event, StormPassed]("storm-passed", 1),
		eventlog.Define[Event, Admitted]("admitted", 1),
		eventlog.Define[Event, MassFailurePassed]("mass-failure-passed", 1),
	)
}
