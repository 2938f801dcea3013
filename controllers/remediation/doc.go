// Package remediation reconciles RepairPolicies, owners of machines, and SurgeRemediations. A
// RepairPolicy owns the health checks of its machines. An owner is reconciled when something about
// it changed. A SurgeRemediation shows the log's view of its machine.
//
// This package never contains a decision about a machine, a write to a machine or its owner, or the log itself.
package remediation
