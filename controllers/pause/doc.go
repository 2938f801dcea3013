// Package pause reconciles the Pause resource: its spec becomes a request in the log, the log's view becomes its status, and its
// deletion becomes a release.
//
// What never may live here: a decision. They are made in pause/request.
package pause
