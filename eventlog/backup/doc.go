// Package backup backs up an event log to a folder, and restores it unchanged. A backup has each
// commit with its sequence, time, subject, header and data.
//
// A backup is a manifest, parts in the form of package export, and the hashes of the log's tree. The manifest is written last,
// when all that it names is on the disk and was read again, so a backup is whole or it is the one that was there before. A
// later backup into the same folder adds what is new. The first one takes the folder, which must be empty, by a manifest in which
// no backup has ended: nothing else is ever removed or replaced.
//
// What never may live here: what an event means, and where a backup is kept.
package backup
