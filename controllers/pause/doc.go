// Package pause reconciles Pauses: the spec becomes a request, the view the status, and a deletion a release.
//
// This package never contains decisions: package pause/request makes them.
package pause
