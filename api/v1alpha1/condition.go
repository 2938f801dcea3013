package v1alpha1

// Condition types. Reconciling and Stalled follow the kstatus convention: if neither is True, the
// resource is current, and Ready is the result.
const (
	// ConditionReady is True when the operation has succeeded.
	ConditionReady = "Ready"
	// ConditionReconciling is True while work is in progress.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing more happens until a user acts.
	ConditionStalled = "Stalled"
	// ConditionThrottled is True while work that could start waits. The reasons are NoFreePlace
	// (all slots are in use), TooManyUnfinished (the limit of driven runs or moves is reached),
	// QuotaExceeded (the namespace has reached its quota of events) and NotAdopted (the WorkflowRun
	// has not adopted the events that a client wrote to the log).
	ConditionThrottled = "Throttled"
	// ConditionMassFailure is True during a mass failure of the fleet or of a failure domain, and
	// during the cooldown after it. No remediation begins in the fleet, or no replacement is
	// created in the failure domain.
	ConditionMassFailure = "MassFailure"
	// ConditionAcknowledged of a Pause is True while every object is paused. It is False with the reason
	// Waiting until all objects have acknowledged, or TimedOut if some did not acknowledge in time.
	ConditionAcknowledged = "Acknowledged"
	// ConditionReadable is False, with the reason Unreadable, if scute cannot read the spec;
	// otherwise it is absent. The message names the field.
	ConditionReadable = "Readable"
)
