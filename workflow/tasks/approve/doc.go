// Package approve implements the task kind Approve, which waits for an operator's decision.
//
// This package never contains the effects of the decision.
package approve
