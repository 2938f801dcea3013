// Package backup backs up an event log to a folder, and restores it unchanged. A backup has each
// commit with its sequence, time, subject, header and data.
//
// A backup consists of a manifest, parts in the format of exports, and the hashes of the log's
// tree. The manifest is written last, when all files that it names are on the disk and were
// verified. An interrupted backup therefore keeps the previous one intact. A later backup into the
// same folder adds the new commits. The first backup requires an empty folder, and begins with a
// manifest without a completed backup. A backup never removes or replaces other files.
//
// This package never contains the meaning of an event, or where a backup is kept.
package backup
