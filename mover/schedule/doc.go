// Package schedule is the pure core of the resource BackupSchedule. It has the events and the state
// of a schedule, and NextStep: begin a backup, check one whose process ended, remove what retention
// no longer keeps, or wait.
//
// The log has what was backed up, where to, and what was removed. The store is the authority for what is there: only what a schedule
// recorded as its own is removed, and only after its ID was read in the store. What never may live here: clients, clocks, and the
// format of a backup (package mover/archive).
package schedule
