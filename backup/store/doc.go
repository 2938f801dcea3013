// Package store stores backups of clusters on a volume or in an S3-compatible bucket. Upload copies
// a backup file by file, its list of checksums last, so that the files of a killed process never
// count as a backup. Remove deletes that list first.
//
// A store may belong to another party, and may respond with anything, slowly, or never. So requests
// have deadlines, responses are limited, redirects are not followed, and errors contain no text of
// the store except for known codes.
//
// This package never contains the content of a backup (package mover/archive), or the decision to
// make or remove one (package backup/schedule).
package store
