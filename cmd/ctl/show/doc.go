// Package show lists the domains of the log and describes their events in words, and renders text that the nouns of scutectl share: fields, tables,
// times, phases and events. It is pure: callers pass the time, the width and the colors.
//
// This package never reads streams, clusters or logs, and never contains text that only one noun shows.
package show
