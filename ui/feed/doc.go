// Package feed keeps the commits of a log in a temporary file, folds them with the domains' own cores, notifies open pages while the log
// grows, and returns the state at any moment of the past.
//
// What never may live here: HTTP, and how anything is shown.
package feed
