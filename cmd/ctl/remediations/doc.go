// Package remediations reads remediations: from the SurgeRemediation of a machine, or from the event log, which knows more of
// each: the rule that decided, what was seen, and every step.
//
// What never may live here: printing, and any write.
package remediations
