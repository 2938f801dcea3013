// Package pause reconciles Pauses: the spec becomes a request, the view the status, and a deletion
// a release.
//
// What never may live here: a decision. They are made in pause/request.
package pause
