// Package remediation implements the commands of scutectl about machines and their remediations:
// which machines are unhealthy, what scute decided about them, and what happens next. It reads
// SurgeRemediations, Cluster API's objects with scute's annotations, and the event log. It sends a
// user's requests to the daemon.
//
// This package never contains a rule of remediation, and never decides whether a machine is
// healthy. The daemon decides what follows from a hold or an abort.
package remediation
