// Package remediation is all that scutectl has about remediations: it reads them, from the SurgeRemediation of a machine or from
// the event log, which knows more of each: the rule that decided, what was seen, and every step; it shows them; and it holds the
// commands that say to the daemon what an operator wants of one of them.
//
// What never may live here: a rule of remediation. What follows from a hold or an abort is for the daemon to say.
package remediation
