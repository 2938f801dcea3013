// Package show renders text that the nouns of scutectl share: fields, tables, times, phases and
// events. It is pure: the time, the width and the colors are given.
//
// What never may live here: streams, clusters, logs, and what only one noun shows.
package show
