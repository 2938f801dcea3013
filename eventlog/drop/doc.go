// Package drop drops closed epochs of an event log that are in an archive.
//
// An archive is a backup of the log (package backup). Prepare verifies it, compares the log with it, and decides what of the epochs stays: every
// commit of what has not ended, as a Judge says, and of everything else that there was. It changes nothing. Carry then has the log
// do it.
//
// What never may live here: what an event means, and how streams are changed.
package drop
