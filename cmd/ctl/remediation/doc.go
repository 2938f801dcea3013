// Package remediation implements the commands of scutectl about remediations. It reads them from the SurgeRemediation of a machine, or with every
// rule, observation and step from the event log. It shows them, and sends a user's requests to the daemon.
//
// This package never contains a rule of remediation. The daemon decides what follows from a hold or an abort.
package remediation
