package remediator

// Names for the tests in package remediator_test.
type (
	Cause     = cause
	MarkState = markState
)

const (
	RulePolicyMassFailure = rulePolicyMassFailure

	Cancelling = cancelling
	Settling   = settling
	Sparing    = sparing
)
