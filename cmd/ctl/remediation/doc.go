// Package remediation holds the commands about remediations: they show what becomes of unhealthy machines, and say to
// the daemon what an operator wants of one of them.
//
// What never may live here: a rule of remediation. What follows from a hold or an abort is for the daemon to say.
package remediation
