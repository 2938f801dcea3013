// Package approve implements the task kind Approve, which waits for an operator's decision.
//
// What never may live here: what follows from the decision.
package approve
