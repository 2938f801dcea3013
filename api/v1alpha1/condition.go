package v1alpha1

// Condition types. Reconciling and Stalled follow the kstatus convention: a resource is current when neither is True
// and Ready says how it ended.
const (
	// ConditionReady is True when the undertaking ended as asked.
	ConditionReady = "Ready"
	// ConditionReconciling is True while work is in progress.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing more happens without a human.
	ConditionStalled = "Stalled"
	// ConditionThrottled is True while work that could be started waits: for a free place (reason NoFreePlace), because as
	// many unfinished runs or moves are driven as may be at once (reason TooManyUnfinished), or because the namespace has
	// reached its quota of events (reason QuotaExceeded). A run waits, too, for its WorkflowRun to adopt what a client wrote to the
	// log about it (reason NotAdopted).
	ConditionThrottled = "Throttled"
	// ConditionMassFailure is True while so many machines of the fleet, or of a failure domain, are unhealthy at once that
	// nothing is begun, or nothing is sent there, and until the cooldown after it is over.
	ConditionMassFailure = "MassFailure"
	// ConditionAcknowledged of a Pause is True while every object is at rest. It is False for the reason Waiting while some are
	// waited for, and for the reason TimedOut when some did not acknowledge in time.
	ConditionAcknowledged = "Acknowledged"
	// ConditionReadable is False, for the reason Unreadable, when scute cannot read the spec; it is there only then. The
	// message names the field.
	ConditionReadable = "Readable"
)
