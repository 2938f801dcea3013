// Package remediation reconciles what the remediator is asked and told by: a RepairPolicy owns what makes Cluster API look
// at its machines, each owner of machines gets its turn when something about it changed, and a SurgeRemediation shows the
// log's view of its machine.
//
// What never may live here: a decision about a machine, a write to a machine or its owner, and the log itself.
package remediation
