// Package remediation implements the commands of scutectl about remediations. It reads them from
// the SurgeRemediation of a machine, or with every rule, observation and step from the event log.
// It shows them, and sends an operator's requests to the daemon.
//
// What never may live here: a rule of remediation. What follows from a hold or an abort is for the daemon to say.
package remediation
