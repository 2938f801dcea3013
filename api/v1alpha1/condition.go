package v1alpha1

// Condition types. Reconciling and Stalled follow the kstatus convention: a resource is current if
// neither is True, and then Ready shows the result.
const (
	// ConditionReady is True when the operation has succeeded.
	ConditionReady = "Ready"
	// ConditionReconciling is True while work is in progress.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing more happens until a user acts.
	ConditionStalled = "Stalled"
	// ConditionThrottled is True while work that could start waits: for a free slot (reason
	// NoFreePlace), because the limit of driven runs or moves is reached (reason
	// TooManyUnfinished), or because the namespace has reached its quota of events (reason
	// QuotaExceeded). A run also waits for its WorkflowRun to adopt the events that a client wrote
	// to the log (reason NotAdopted).
	ConditionThrottled = "Throttled"
	// ConditionMassFailure is True during a mass failure of the fleet or of a failure domain, and
	// until the cooldown after it has ended. No remediation begins in the fleet, or no replacement
	// is created in the failure domain.
	ConditionMassFailure = "MassFailure"
	// ConditionAcknowledged of a Pause is True while every object is paused. It is False with the
	// reason Waiting until all objects have acknowledged, and with the reason TimedOut if some did
	// not acknowledge in time.
	ConditionAcknowledged = "Acknowledged"
	// ConditionReadable is False, with the reason Unreadable, if scute cannot read the spec;
	// otherwise it is absent. The message contains the name of the field.
	ConditionReadable = "Readable"
)
