// Package show turns what the nouns of scutectl have in common into lines of text: fields and tables, times, phases, etcd's
// quorum, and the events of the log. It is pure: the time, the width and the colors are given.
//
// What never may live here: streams, clusters, logs, and what only one noun shows.
package show
