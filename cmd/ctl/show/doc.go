// Package show renders text that the nouns of scutectl share: fields, tables, times, phases and events. It is pure: callers pass the time, the width
// and the colors.
//
// This package never reads streams, clusters or logs, and never contains text that only one noun shows.
package show
