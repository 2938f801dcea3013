// Package schedule is the pure core of the resource BackupSchedule. It has the events and the state
// of a schedule, and NextStep, which decides whether to start a backup, check a backup whose
// process ended, delete backups that retention no longer keeps, or wait.
//
// The log records what was backed up, where, and what was deleted. The store is the authority for
// what exists: only recorded backups are deleted, and only after their ID was read in the store.
//
// This package never contains clients, clocks, or the format of a backup (package mover/archive).
package schedule
