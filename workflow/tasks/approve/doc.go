// Package approve implements the task kind Approve, which waits for the decision of an operator.
//
// This package never contains the effects of the decision.
package approve
