// Package approve is the kind of task Approve: it waits for the decision of an operator.
//
// What never may live here: what follows from the decision.
package approve
