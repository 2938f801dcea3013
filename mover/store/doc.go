// Package store stores backups of clusters on a volume or in an S3-compatible bucket. A backup is
// copied there file by file, with its list of checksums last, so that what a killed process leaves
// is never taken for a backup; it is removed with that list first.
//
// A store may belong to somebody else and may answer anything, slowly, or never: requests have deadlines, answers are bounded, no
// redirect is followed, and errors repeat no text of the store but the codes that are known.
//
// What never may live here: what is in a backup (package mover/archive), and when one is made or removed (package mover/schedule).
package store
